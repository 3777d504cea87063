// What a backup and a restore share: checksums of files, failures in words, and files that reach the disk before they are named.
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { Data, Effect } from "effect"

/** A backup that was not made or not restored. `message` is the one line for the operator. */
export class BackupFailed extends Data.TaggedError("BackupFailed")<{
  readonly place: string
  readonly problem: string
}> {
  override get message() {
    return `${this.place}: ${this.problem}`
  }
}

/** SQLite's text for a full disk, which has no code. */
const fullText = /disk is full|disk I\/O error/

/** The system's errors in words. */
const words: Readonly<Record<string, string>> = {
  EACCES: "this user may not read or write here",
  EDQUOT: "no space is left (disk quota)",
  EFBIG: "no space is left (limit of a file's size)",
  EISDIR: "is a folder",
  ENOENT: "no such file or folder",
  ENOSPC: "no space is left on the disk",
  ENOTDIR: "a part of this path is a file, not a folder",
  EROFS: "the file system is read-only",
}

export const inWords = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const code = "code" in cause ? String(cause.code) : ""
  if (words[code] !== undefined) return words[code]
  return fullText.test(cause.message) ? "no space is left on the disk" : cause.message
}

/** Runs a step whose failure concerns this place. */
export const step = <A>(place: string, run: () => Promise<A> | A): Effect.Effect<A, BackupFailed> =>
  Effect.tryPromise({
    try: async () => run(),
    catch: (cause) =>
      cause instanceof BackupFailed ? cause : new BackupFailed({ place, problem: inWords(cause) }),
  })

export const sha256Of = async (path: string): Promise<string> => {
  const digest = createHash("sha256")
  for await (const chunk of createReadStream(path)) digest.update(chunk as Buffer)
  return digest.digest("hex")
}

/**
 * A file that grows over the limit of its size (`ulimit -f`) gives an error instead of a signal that ends the process, until the scope
 * closes.
 */
export const noSizeSignal = Effect.acquireRelease(
  Effect.sync(() => {
    const ignore = () => {}
    process.on("SIGXFSZ", ignore)
    return ignore
  }),
  (ignore) => Effect.sync(() => void process.off("SIGXFSZ", ignore)),
)
