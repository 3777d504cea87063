// The programs of the product as JavaScript (Programs.ts), and their compiled code, kept for all nodes of one test run: each has a data
// directory of its own, and would compile the same modules again at the start of every engine and command.
import { existsSync, mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

/** Both are set for the run by OneTemporaryFolder; the second is a URL. Not `EDGEWISE_…`: the product refuses such variables that are no settings. */
export const compiledVariable = "TEST_COMPILED_CODE"
export const programsVariable = "TEST_PROGRAMS"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** The folder that has `bin` and the program as the package has them. The repository, if no run of tests has made one. */
export const programFolder: string = fileURLToPath(process.env[programsVariable] ?? pathToFileURL(root))

/** @param path of the program's source, from the root, without `.ts` */
export const programFile = (path: string): string =>
  programFolder === root ? join(root, `${path}.ts`) : join(programFolder, "app", `${path}.js`)

/** The entry of the command line. */
export const mainFile: string = programFile("src/main")

const folder = (): string | undefined => process.env[compiledVariable]

/** Makes a data directory whose folder of compiled code is the run's (store/files/CompileCacheFolder.ts). */
export const withCompiledCode = (dataDir: string): void => {
  const shared = folder()
  if (shared === undefined || existsSync(dataDir)) return
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  symlinkSync(shared, join(dataDir, "compiled"))
}

/** For a process that runs a command: it compiles no module that an earlier one has compiled. */
export const compiledEnvironment = (): Readonly<Record<string, string>> => {
  const shared = folder()
  return shared === undefined ? {} : { NODE_COMPILE_CACHE: shared }
}
