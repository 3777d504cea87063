// Whether a node could keep its data where they are to be, tried without leaving anything behind.
import { existsSync, rmdirSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { databaseFileProblem, tryDataDirectory } from "#store/files/DataDir.ts"

/** The directories that have to be made for `dir`, the innermost first. */
const missingOf = (dir: string): ReadonlyArray<string> =>
  existsSync(dir) || dirname(dir) === dir ? [] : [dir, ...missingOf(dirname(dir))]

/** Not by force: what another process has put there meanwhile stays. */
const removeEmpty = (dirs: ReadonlyArray<string>): void => {
  try {
    for (const dir of dirs) rmdirSync(dir)
  } catch {
    return
  }
}

/** What is wrong with the data directory, or undefined. One that is not there is made and removed again. */
export const dataDirProblem = (dir: string): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const missing = missingOf(dir)
    return Effect.match(tryDataDirectory(dir), {
      onFailure: ({ message }) => message,
      onSuccess: () => databaseFileProblem(dir),
    }).pipe(Effect.ensuring(Effect.sync(() => removeEmpty(missing))))
  })
