// The groups of tests, by what they need. The end of a file's name says which group it is in: `X.test.ts` is fast,
// `X.process.test.ts` starts processes, and so on. vitest.config.ts makes a project of each or of several; Guard.ts checks that a file
// uses only what its group allows.
import { readdirSync, readFileSync } from "node:fs"
import { join, sep } from "node:path"
import { fileURLToPath } from "node:url"

/** In order: a group may also use what the groups before it may use. */
export const groups = ["fast", "process", "weights", "postgres", "browser", "long"] as const

/** The project of the files of several groups. */
export const together = "together"

export type Group = (typeof groups)[number]

/** The group in a file's name; `fast` where there is none. Where files of several groups run, a file of all dialects needs PostgreSQL. */
export const groupOf = (path: string): Group =>
  path.endsWith(".dialects.test.ts")
    ? "postgres"
    : (groups.find((group) => path.endsWith(`.${group}.test.ts`)) ?? "fast")

/** Folders of tests, from the root. */
const folders = ["test", "engines/grammar/test", "models/test", "src/web/voice/test"]

/** Pattern of the files of a group. `fast` has all files that are in no other group. */
export const filesOf = (group: Group): string =>
  `{${folders.join()}}/**/*${group === "fast" ? "" : `.${group}`}.test.ts`

/** Tests of the store that run twice: in `fast` on SQLite, in `postgres` on PostgreSQL; where files of several groups run, on both. */
export const dialectFiles = "test/**/*.dialects.test.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** Files that run in their own group and, over more cases or for longer, in `long`: those that import Runs.ts. */
export const fullerFiles = (): ReadonlyArray<string> =>
  folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
        (path) => `${folder}/${path.replaceAll(sep, "/")}`,
      ),
    )
    .filter((path) => path.endsWith(".test.ts") && !path.endsWith(".long.test.ts"))
    .filter((path) => readFileSync(join(root, path), "utf8").includes("support/groups/Runs.ts"))

declare module "vitest" {
  interface ProvidedContext {
    /** The group in which a file runs; absent where that is the one in its name. */
    readonly group?: Group
  }
}
