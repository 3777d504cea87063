// The development key: made at the first start of an empty data directory and kept there for its owner alone, so that
// `npm start` can print a curl line that works. Called by `serve`; commands that merely open the store never make one.
import { randomBytes } from "node:crypto"
import { linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { apiKeyFrom, isApiKey, keyBytes } from "#domain/ApiKey.ts"
import { Accounts } from "./Accounts.ts"
import { problemOf } from "./DataDir.ts"
import { type InvalidName, StoreUnavailable } from "./StoreErrors.ts"

/** It has a payment method: nobody's first requests should meet a 402. */
const devOrg = "dev"

const readKey = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8").trim()
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined
    throw cause
  }
}

/** Writes the whole key or nothing; false where another process was first. */
const writeKey = (file: string, apiKey: string): boolean => {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${apiKey}\n`, { mode: 0o600, flag: "wx" })
  try {
    linkSync(draft, file)
    return true
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return false
    throw cause
  } finally {
    unlinkSync(draft)
  }
}

const fileAccess = <A>(file: string, access: () => A): Effect.Effect<A, StoreUnavailable> =>
  Effect.try({
    try: access,
    catch: (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }),
  })

/**
 * The development key of a data directory, or undefined where there is none: the store had organizations before its
 * first start, or the key was revoked. The file is written before the row, so that a crash in between loses nothing:
 * the next start finds the file and registers it.
 */
export const developmentKey = Effect.fn("DevKey.developmentKey")(function* (
  dataDir: string,
): Effect.fn.Return<string | undefined, StoreUnavailable | InvalidName, Accounts> {
  const accounts = yield* Accounts
  const file = join(dataDir, "dev-key")
  let apiKey = yield* fileAccess(file, () => readKey(file))
  if (apiKey === undefined) {
    if (!(yield* accounts.isEmpty)) return undefined
    apiKey = yield* fileAccess(file, () => {
      const fresh = apiKeyFrom(randomBytes(keyBytes))
      return writeKey(file, fresh) ? fresh : readKey(file)
    })
  }
  if (apiKey === undefined || !isApiKey(apiKey)) {
    return yield* new StoreUnavailable({ place: file, problem: "does not hold an API key; remove it" })
  }
  return (yield* accounts.adoptFirstKey(apiKey, devOrg)) ? apiKey : undefined
})
