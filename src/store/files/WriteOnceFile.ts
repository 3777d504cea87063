// A small file for its owner alone that is written once and then kept: the first process writes it, all others read
// what that one wrote.
import { linkSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { problemOf } from "./DataDir.ts"
import { StoreUnavailable } from "./StoreErrors.ts"

const isCode = (cause: unknown, code: string): boolean =>
  cause instanceof Error && "code" in cause && cause.code === code

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8").trim()
  } catch (cause) {
    if (isCode(cause, "ENOENT")) return undefined
    throw cause
  }
}

/** Writes the whole text or nothing. False if another process wrote the file first. */
const write = (file: string, text: string): boolean => {
  const draft = `${file}.${process.pid}`
  // Synced: after a loss of power an empty file would look damaged.
  writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: "wx", flush: true })
  try {
    linkSync(draft, file)
    return true
  } catch (cause) {
    if (isCode(cause, "EEXIST")) return false
    throw cause
  } finally {
    unlinkSync(draft)
  }
}

const access = <A>(file: string, run: () => A): Effect.Effect<A, StoreUnavailable> =>
  Effect.try({ try: run, catch: (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }) })

/** The file's text. Undefined if there is no such file. */
export const readOnceFile = (file: string): Effect.Effect<string | undefined, StoreUnavailable> =>
  access(file, () => read(file))

/** The file's text. If there is no file, it is created with `fresh()`. */
export const onceFile = (file: string, fresh: () => string): Effect.Effect<string, StoreUnavailable> =>
  access(file, () => {
    const known = read(file)
    if (known !== undefined) return known
    const text = fresh()
    return write(file, text) ? text : (read(file) ?? text)
  })

export const removeOnceFile = (file: string): Effect.Effect<void, StoreUnavailable> =>
  access(file, () => rmSync(file, { force: true }))
