// A SigningKeyStore in a file: `signing-keys.json` in the data directory, for its owner alone.
import { randomUUID } from "node:crypto"
import { link, readFile, rename, stat, unlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { problemOf } from "../files/DataDir.ts"
import { fileLock } from "../files/FileLock.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { encodeKeys, parseKeys, type SigningKeyStore, type StoredKey } from "./SigningKeyStore.ts"

export type { StoredKey } from "./SigningKeyStore.ts"

export const signingKeyFile = (dataDir: string): string => join(dataDir, "signing-keys.json")

const isCode = (cause: unknown, code: string): boolean =>
  cause instanceof Error && "code" in cause && cause.code === code

const access = <A>(file: string, run: () => Promise<A>): Effect.Effect<A, StoreUnavailable> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }),
  })

/** Changes with every write. Undefined if there is no file. */
const versionOf = (file: string): Effect.Effect<string | undefined, StoreUnavailable> =>
  access(file, async () => {
    try {
      const { ino, mtimeMs, size } = await stat(file)
      return `${ino}:${mtimeMs}:${size}`
    } catch (cause) {
      if (isCode(cause, "ENOENT")) return undefined
      throw cause
    }
  })

/** The message must not quote the file, which holds secrets. */
const unreadable = (file: string) =>
  new StoreUnavailable({
    place: file,
    problem: "does not hold signing keys; remove it to start with a new one",
  })

const readKeys = (file: string): Effect.Effect<ReadonlyArray<StoredKey>, StoreUnavailable> =>
  Effect.gen(function* () {
    const text = yield* access(file, async () => {
      try {
        return await readFile(file, "utf8")
      } catch (cause) {
        if (isCode(cause, "ENOENT")) return undefined
        throw cause
      }
    })
    if (text === undefined) return []
    return yield* Effect.mapError(parseKeys(text), () => unreadable(file))
  })

/** Writes all keys or nothing. With `create`, an existing file of another process is kept and this one is dropped. */
const writeKeys = (
  file: string,
  keys: ReadonlyArray<StoredKey>,
  how: "create" | "replace",
): Effect.Effect<void, StoreUnavailable> =>
  access(file, async () => {
    const draft = `${file}.${randomUUID()}`
    await writeFile(draft, encodeKeys(keys), { mode: 0o600, flag: "wx", flush: true })
    if (how === "replace") return rename(draft, file)
    try {
      await link(draft, file)
    } catch (cause) {
      if (!isCode(cause, "EEXIST")) throw cause
    } finally {
      await unlink(draft)
    }
  })

export const signingKeysIn = (dataDir: string): SigningKeyStore => {
  const file = signingKeyFile(dataDir)
  return {
    place: file,
    version: versionOf(file),
    read: readKeys(file),
    // Of two processes that make the first key at once, one creates the file; the other reads that key at its next
    // check.
    change: (next) =>
      Effect.gen(function* () {
        // Reading and writing are one step across processes: a command may end all sessions while a node replaces its
        // key.
        yield* Effect.mapError(
          fileLock(join(dirname(file), "signing-keys.lock"), () => {}),
          (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }),
        )
        const changed = yield* next(yield* readKeys(file))
        if (changed !== undefined) yield* writeKeys(file, changed.keys, changed.how)
      }).pipe(Effect.scoped),
  }
}
