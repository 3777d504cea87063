// One file of a hub on its way to the disk: what has come of it so far, and one connection after another that brings the
// rest, hashed as it is written. Made by PullFile, which holds the lock, counts the attempts and judges the sum.
import { createHash, type Hash } from "node:crypto"
import { createReadStream } from "node:fs"
import { type FileHandle, mkdir, open, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { Schema } from "effect"
import { type HubFile, hubScheme, resolveUrl } from "#domain/models/HubFile.ts"
import { type Answer, ask, bareTag, type Hub, Transient } from "./HubClient.ts"
import { CannotKeep, PullCorrupt } from "./PullErrors.ts"
import { besidePath, keptPath, writeRecord } from "./Weights.ts"

export interface PullSettings {
  readonly hub: Hub
  /** Where weights are kept. */
  readonly dir: string
  /** Attempts in a row that bring nothing, the first included. */
  readonly attempts: number
  /** First pause between two attempts, milliseconds; doubles up to the second. */
  readonly backoffMs: readonly [base: number, cap: number]
  readonly silenceMs: number
}

export interface PullWatcher {
  /** Another process pulls the same file. */
  readonly waiting: () => void
  readonly progress: (doneBytes: number, totalBytes: number) => void
  /** An attempt failed and another follows. */
  readonly retrying: (problem: string, attempt: number) => void
}

/** Left free on the disk beside the file, bytes: the store and the uploads live there too. A guess. */
const spareBytes = 64 * 1024 * 1024

/** What an unfinished file is worth going on with: the content under this tag had this size. */
const Unfinished = Schema.Struct({ etag: Schema.String, sizeBytes: Schema.Int })
type Unfinished = typeof Unfinished.Type
const decodeUnfinished = Schema.decodeUnknownSync(Schema.fromJsonString(Unfinished))

const sha256Pattern = /^[0-9a-f]{64}$/

/** A whole file, and what the hub says its sum should be. */
export interface Whole {
  readonly sizeBytes: number
  readonly sha256: string
  readonly linkedSha256: string | undefined
}

/** One file's pull: its names on disk and what has come so far. Used under the lock. */
export class Download {
  readonly source: string
  readonly path: string
  private readonly file: HubFile
  private readonly settings: PullSettings
  private readonly watcher: PullWatcher
  receivedBytes = 0

  constructor(file: HubFile, settings: PullSettings, watcher: PullWatcher) {
    this.file = file
    this.settings = settings
    this.watcher = watcher
    this.source = `${hubScheme}${file.repo}@${file.revision}/${file.path}`
    this.path = keptPath(settings.dir, file)
  }

  /** Held by whoever works on the file. */
  get lock(): string {
    return besidePath(this.settings.dir, this.file, "lock")
  }
  private get part(): string {
    return besidePath(this.settings.dir, this.file, "part")
  }
  private get note(): string {
    return besidePath(this.settings.dir, this.file, "note")
  }

  /** The directories; for their owner alone, as the rest of the data directory. */
  async makeRoom(): Promise<void> {
    for (const path of [this.path, this.part]) await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  }

  corrupt(problem: string): PullCorrupt {
    return new PullCorrupt({ source: this.source, problem })
  }

  /** Forgets what has come. */
  async discard(): Promise<void> {
    await rm(this.part, { force: true })
    await rm(this.note, { force: true })
  }

  private async resumable(): Promise<(Unfinished & { readonly offset: number }) | undefined> {
    try {
      const note = decodeUnfinished(await readFile(this.note, "utf8"))
      const { size } = await stat(this.part)
      // A whole file whose sum nobody looked at, or more than a file: from the start again.
      return size > 0 && size < note.sizeBytes ? { ...note, offset: size } : undefined
    } catch {
      return undefined
    }
  }

  /** One connection: as much of the file as it brings. Returns when all of it is on disk. */
  async attempt(signal: AbortSignal): Promise<Whole> {
    const { hub } = this.settings
    const before = await this.resumable()
    const answer = await ask({
      hub,
      url: resolveUrl(hub.endpoint, this.file),
      from: before,
      signal,
      silenceMs: this.settings.silenceMs,
    })
    try {
      const range = answer.status === 206 ? rangeOf(answer.headers["content-range"]) : undefined
      const going = before !== undefined && range?.start === before.offset && range.total === before.sizeBytes
      if (answer.status === 416 || (answer.status === 206 && !going)) {
        await this.discard()
        throw new Transient(answer.host, "the file is another one than before")
      }
      const sizeBytes = this.declaredSize(answer, range?.total)
      const offset = going ? before.offset : 0
      await this.checkRoom(sizeBytes - offset)
      if (!going) await this.begin(answer, sizeBytes)
      const hash = createHash("sha256")
      if (offset > 0) for await (const chunk of createReadStream(this.part)) hash.update(chunk as Buffer)
      await this.write(answer, offset, sizeBytes, hash)
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

  /** Size of the whole file. Every side that names one must name the same; without any, nothing bounds the file. */
  private declaredSize({ headers, linkedSize, status }: Answer, rangeTotal: number | undefined): number {
    const length = headers["content-length"]
    const own = status === 206 ? rangeTotal : length === undefined ? undefined : Number(length)
    const size = own ?? linkedSize
    if (size === undefined) throw this.corrupt("the hub does not say how large the file is")
    if (linkedSize !== undefined && linkedSize !== size) {
      throw this.corrupt(`the hub says ${linkedSize} bytes, its storage ${size}`)
    }
    return size
  }

  private async checkRoom(wantedBytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(dirname(this.path))
    const freeBytes = bavail * bsize
    if (wantedBytes + spareBytes <= freeBytes) return
    const problem = `needs ${wantedBytes + spareBytes} bytes of disk, ${freeBytes} are free in ${this.settings.dir}`
    throw new CannotKeep({ source: this.source, problem })
  }

  private async begin({ headers }: Answer, sizeBytes: number): Promise<void> {
    await this.discard()
    await writeFile(this.part, "")
    const etag = headers.etag
    // If-Range takes strong tags only: without one, a cut means starting again.
    if (etag === undefined || etag.startsWith("W/") || bareTag(etag) === "") return
    await writeFile(this.note, JSON.stringify({ etag, sizeBytes } satisfies Unfinished))
  }

  private async write(answer: Answer, offset: number, sizeBytes: number, hash: Hash): Promise<void> {
    const handle: FileHandle = await open(this.part, "r+")
    let at = offset
    try {
      this.watcher.progress(at, sizeBytes)
      for await (const chunk of connected(answer)) {
        if (at + chunk.length > sizeBytes) {
          throw this.corrupt(`more came than the ${sizeBytes} bytes that were declared`)
        }
        hash.update(chunk)
        for (let done = 0; done < chunk.length; ) {
          done += (await handle.write(chunk, done, chunk.length - done, at + done)).bytesWritten
        }
        at += chunk.length
        this.receivedBytes += chunk.length
        this.watcher.progress(at, sizeBytes)
      }
      if (at < sizeBytes) throw new Transient(answer.host, `cut after ${at} of ${sizeBytes} bytes`)
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  /** The file is whole and right: it gets its record and its name. */
  async keep({ sha256, sizeBytes }: Whole): Promise<void> {
    // First: an older file must not be taken for the one that its new record is about.
    await rm(this.path, { force: true })
    await writeRecord(this.settings.dir, this.file, { sizeBytes, sha256 })
    await rename(this.part, this.path)
    await rm(this.note, { force: true })
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

/** The body's chunks; a connection that breaks is worth another attempt, a disk that breaks is not. */
async function* connected({ body, host }: Answer): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk as Buffer
  } catch (cause) {
    throw new Transient(host, (cause as NodeJS.ErrnoException).code ?? (cause as Error).message)
  }
}
