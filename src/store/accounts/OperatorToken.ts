// The file of the operator token in the data directory, which is there while the node runs.
import { renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { problemOf } from "../files/DataDir.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"

export const operatorTokenFile = (dataDir: string): string => join(dataDir, "operator-token")

/** A new file in place of one that a killed node has left: neither its text nor its mode nor a link stays. */
const write = (file: string, token: string): void => {
  const draft = `${file}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, `${token}\n`, { mode: 0o600, flag: "wx" })
  renameSync(draft, file)
}

/** Writes the token for its owner alone, and removes the file when the scope closes. Only the edge that has the directory's lock calls it. */
export const keepOperatorToken = (
  dataDir: string,
  token: string,
): Effect.Effect<void, StoreUnavailable, Scope.Scope> => {
  const file = operatorTokenFile(dataDir)
  return Effect.acquireRelease(
    Effect.try({
      try: () => write(file, token),
      catch: (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }),
    }),
    () => Effect.ignore(Effect.try(() => rmSync(file, { force: true }))),
  )
}
