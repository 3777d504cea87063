// The download of one hub file: what has arrived so far, and one connection after another that fetches the rest and
// hashes it as it is written. The caller holds the lock, counts the attempts and compares the sum.
import { createHash, type Hash } from "node:crypto"
import { createReadStream } from "node:fs"
import { type FileHandle, mkdir, open, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { Schema } from "effect"
import { type HubFile, resolveUrl, sourceOf } from "#domain/models/HubFile.ts"
import { type Answer, ask, bareTag, type Hub, Transient } from "./HubClient.ts"
import { CannotKeep, PullCorrupt } from "./PullErrors.ts"
import { besidePath, keptPath, writeRecord } from "./Weights.ts"

export interface PullSettings {
  readonly hub: Hub
  /** The directory of the weights. */
  readonly dir: string
  /** Consecutive attempts without progress, including the first, before the download fails. */
  readonly attempts: number
  /** First and longest pause between two attempts, milliseconds. The pause doubles each time. */
  readonly backoffMs: readonly [base: number, cap: number]
  readonly silenceMs: number
}

export interface PullWatcher {
  /** Called when another process is pulling the same file. */
  readonly waiting: () => void
  readonly progress: (doneBytes: number, totalBytes: number) => void
  /** Called when an attempt has failed and another follows. */
  readonly retrying: (problem: string, attempt: number) => void
}

/** Bytes left free on the disk, because the store and the uploads are on it too. A guess. */
const spareBytes = 64 * 1024 * 1024

/** The condition for resuming a download: the host's content under this tag had this size. */
const Unfinished = Schema.Struct({ etag: Schema.String, sizeBytes: Schema.Int })
type Unfinished = typeof Unfinished.Type
const decodeUnfinished = Schema.decodeUnknownSync(Schema.fromJsonString(Unfinished))

const sha256Pattern = /^[0-9a-f]{64}$/

/** A complete file, and the sum that the hub declares for it. */
interface Whole {
  readonly sizeBytes: number
  readonly sha256: string
  readonly linkedSha256: string | undefined
}

/** The download of one file: its paths on disk and what has arrived. Used under the lock. */
export class Download {
  readonly source: string
  readonly path: string
  readonly #file: HubFile
  readonly #settings: PullSettings
  readonly #watcher: PullWatcher
  readonly #expectedBytes: number | undefined
  receivedBytes = 0

  /** @param expectedBytes the size in the catalog, if it has one */
  constructor(file: HubFile, settings: PullSettings, watcher: PullWatcher, expectedBytes?: number) {
    this.#expectedBytes = expectedBytes
    this.#file = file
    this.#settings = settings
    this.#watcher = watcher
    this.source = sourceOf(file)
    this.path = keptPath(settings.dir, file)
  }

  /** Path of the file's lock. */
  get lock(): string {
    return besidePath(this.#settings.dir, this.#file, "lock")
  }
  get #part(): string {
    return besidePath(this.#settings.dir, this.#file, "part")
  }
  get #note(): string {
    return besidePath(this.#settings.dir, this.#file, "note")
  }

  /** Creates the directories, for their owner only like the rest of the data directory. */
  async makeFolders(): Promise<void> {
    for (const path of [this.path, this.#part]) await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  }

  corrupt(problem: string): PullCorrupt {
    return new PullCorrupt({ source: this.source, problem })
  }

  /** Deletes what has arrived. */
  async discard(): Promise<void> {
    await rm(this.#part, { force: true })
    await rm(this.#note, { force: true })
  }

  async #resumable(): Promise<(Unfinished & { readonly offset: number }) | undefined> {
    try {
      const note = decodeUnfinished(await readFile(this.#note, "utf8"))
      const { size } = await stat(this.#part)
      // A complete file whose sum was not checked, or one that is too long, is downloaded again from the start.
      return size > 0 && size < note.sizeBytes ? { ...note, offset: size } : undefined
    } catch {
      return undefined
    }
  }

  /** Uses one connection to fetch as much of the file as possible. Returns when the file is complete on disk. */
  async attempt(signal: AbortSignal): Promise<Whole> {
    const { hub } = this.#settings
    const before = await this.#resumable()
    const answer = await ask({
      hub,
      url: resolveUrl(hub.endpoint, this.#file),
      from: before,
      signal,
      silenceMs: this.#settings.silenceMs,
    })
    try {
      const range = answer.status === 206 ? rangeOf(answer.headers["content-range"]) : undefined
      const going = before !== undefined && range?.start === before.offset && range.total === before.sizeBytes
      if (answer.status === 416 || (answer.status === 206 && !going)) {
        await this.discard()
        throw new Transient(answer.host, "the file has changed since the download began")
      }
      const sizeBytes = this.#declaredSize(answer, range?.total)
      const offset = going ? before.offset : 0
      await this.#checkFreeSpace(sizeBytes - offset)
      if (!going) await this.#begin(answer, sizeBytes)
      const hash = createHash("sha256")
      if (offset > 0) for await (const chunk of createReadStream(this.#part)) hash.update(chunk as Buffer)
      await this.#write(answer, offset, sizeBytes, hash)
      const linked = answer.linkedEtag
      return {
        sizeBytes,
        sha256: hash.digest("hex"),
        linkedSha256: linked !== undefined && sha256Pattern.test(linked) ? linked : undefined,
      }
    } finally {
      answer.body.destroy()
    }
  }

  /**
   * Size of the whole file. All declared sizes must agree; at least one is required, because nothing else bounds the
   * file.
   */
  #declaredSize({ headers, linkedSize, status }: Answer, rangeTotal: number | undefined): number {
    const length = headers["content-length"]
    const own = status === 206 ? rangeTotal : length === undefined ? undefined : Number(length)
    const size = own ?? linkedSize
    if (size === undefined)
      throw this.corrupt("the hub does not declare the size of the file; set HF_ENDPOINT to another hub")
    if (linkedSize !== undefined && linkedSize !== size) {
      throw this.corrupt(
        `the hub says ${linkedSize} bytes, its storage ${size}; nothing was pulled, try later or set HF_ENDPOINT to another hub`,
      )
    }
    if (this.#expectedBytes !== undefined && this.#expectedBytes !== size) {
      throw this.corrupt(
        `the hub has ${size} bytes, ${this.#expectedBytes} were expected: the file was replaced, or the hub is wrong; remove the model and add it again, or set HF_ENDPOINT to another hub`,
      )
    }
    return size
  }

  async #checkFreeSpace(wantedBytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(dirname(this.path))
    const freeBytes = bavail * bsize
    if (wantedBytes + spareBytes <= freeBytes) return
    const problem = `needs ${wantedBytes + spareBytes} bytes of disk, ${freeBytes} are free in ${this.#settings.dir}`
    throw new CannotKeep({ source: this.source, problem })
  }

  async #begin({ headers }: Answer, sizeBytes: number): Promise<void> {
    await this.discard()
    await writeFile(this.#part, "")
    const etag = headers.etag
    // If-Range accepts strong tags only. Without one, a cut connection means starting again.
    if (etag === undefined || etag.startsWith("W/") || bareTag(etag) === "") return
    await writeFile(this.#note, JSON.stringify({ etag, sizeBytes } satisfies Unfinished))
  }

  async #write(answer: Answer, offset: number, sizeBytes: number, hash: Hash): Promise<void> {
    const handle: FileHandle = await open(this.#part, "r+")
    let at = offset
    try {
      this.#watcher.progress(at, sizeBytes)
      for await (const chunk of connected(answer)) {
        if (at + chunk.length > sizeBytes) {
          throw this.corrupt(
            `received more than the declared ${sizeBytes} bytes; pull again, or set HF_ENDPOINT to another hub`,
          )
        }
        hash.update(chunk)
        for (let done = 0; done < chunk.length; ) {
          done += (await handle.write(chunk, done, chunk.length - done, at + done)).bytesWritten
        }
        at += chunk.length
        this.receivedBytes += chunk.length
        this.#watcher.progress(at, sizeBytes)
      }
      if (at < sizeBytes) throw new Transient(answer.host, `cut after ${at} of ${sizeBytes} bytes`)
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  /** Writes the record of a complete, checked file and gives the file its final name. */
  async keep({ sha256, sizeBytes }: Whole): Promise<void> {
    // First remove the old file: otherwise the new record could be taken for that of the old file.
    await rm(this.path, { force: true })
    await writeRecord(this.#settings.dir, this.#file, { sizeBytes, sha256 })
    await rename(this.#part, this.path)
    await rm(this.#note, { force: true })
    const directory = await open(dirname(this.path), "r")
    await directory.sync().finally(() => directory.close())
  }
}

const rangeOf = (
  header: string | undefined,
): { readonly start: number; readonly total: number } | undefined => {
  const match = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15})$/.exec(header ?? "")
  return match === null ? undefined : { start: Number(match[1]), total: Number(match[2]) }
}

/** The body's chunks. A broken connection throws Transient, which allows another attempt; a disk error does not. */
async function* connected({ body, host }: Answer): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk as Buffer
  } catch (cause) {
    throw new Transient(host, (cause as NodeJS.ErrnoException).code ?? (cause as Error).message)
  }
}
