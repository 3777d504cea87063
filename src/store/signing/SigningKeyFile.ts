// A SigningKeyStore in a file: `signing-keys.json` in the data directory, for its owner alone.
import { randomUUID } from "node:crypto"
import { readFile, rename, stat, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { problemOf } from "../files/DataDir.ts"
import { fileLock } from "../files/FileLock.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { encodeKeys, parseKeys, type SigningKeyStore, type StoredKey } from "./SigningKeyStore.ts"

export const signingKeyFile = (dataDir: string): string => join(dataDir, "signing-keys.json")

const access = <A>(file: string, run: () => Promise<A>): Effect.Effect<A, StoreUnavailable> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }),
  })

/** The same, and undefined if there is no file. */
const accessIfThere = <A>(
  file: string,
  run: () => Promise<A>,
): Effect.Effect<A | undefined, StoreUnavailable> =>
  access(file, () =>
    run().catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === "ENOENT") return undefined
      throw cause
    }),
  )

/** Changes with every write. Undefined if there is no file. */
const versionOf = (file: string): Effect.Effect<string | undefined, StoreUnavailable> =>
  accessIfThere(file, async () => {
    const { ino, mtimeMs, size } = await stat(file)
    return `${ino}:${mtimeMs}:${size}`
  })

/** The message must not quote the file, which holds secrets. */
const unreadable = (file: string) =>
  new StoreUnavailable({
    place: file,
    problem: "does not hold signing keys; remove it to start with a new one",
  })

const readKeys = (file: string): Effect.Effect<ReadonlyArray<StoredKey>, StoreUnavailable> =>
  Effect.gen(function* () {
    const text = yield* accessIfThere(file, () => readFile(file, "utf8"))
    if (text === undefined) return []
    return yield* Effect.mapError(parseKeys(text), () => unreadable(file))
  })

/** Writes all keys or nothing. */
const writeKeys = (file: string, keys: ReadonlyArray<StoredKey>): Effect.Effect<void, StoreUnavailable> =>
  access(file, async () => {
    const draft = `${file}.${randomUUID()}`
    await writeFile(draft, encodeKeys(keys), { mode: 0o600, flag: "wx", flush: true })
    await rename(draft, file)
  })

export const signingKeysIn = (dataDir: string): SigningKeyStore => {
  const file = signingKeyFile(dataDir)
  return {
    place: file,
    version: versionOf(file),
    read: readKeys(file),
    change: (next) =>
      Effect.gen(function* () {
        // Reading and writing are one step across processes: a command may end all sessions while a node replaces its
        // key.
        yield* Effect.mapError(
          fileLock(join(dirname(file), "signing-keys.lock"), () => {}),
          (cause) => new StoreUnavailable({ place: file, problem: problemOf(cause) }),
        )
        const changed = yield* next(yield* readKeys(file))
        if (changed !== undefined) yield* writeKeys(file, changed)
      }).pipe(Effect.scoped),
  }
}
