// Checks whether a node could use its data directory, without leaving anything behind.
import { existsSync, rmdirSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { databaseFileProblem, tryDataDirectory } from "#store/files/DataDir.ts"

/** The directories that would have to be made for `dir`, the innermost first. */
const missingOf = (dir: string): ReadonlyArray<string> =>
  existsSync(dir) || dirname(dir) === dir ? [] : [dir, ...missingOf(dirname(dir))]

/** Removes only empty directories, so that files of other processes stay. */
const removeEmpty = (dirs: ReadonlyArray<string>): void => {
  try {
    for (const dir of dirs) rmdirSync(dir)
  } catch {
    return
  }
}

/** What is wrong with the data directory. Undefined if nothing is. A missing one is made and removed again. */
export const dataDirProblem = (dir: string): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const missing = missingOf(dir)
    return Effect.match(tryDataDirectory(dir), {
      onFailure: ({ message }) => message,
      onSuccess: () => databaseFileProblem(dir),
    }).pipe(Effect.ensuring(Effect.sync(() => removeEmpty(missing))))
  })
