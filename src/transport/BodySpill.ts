// Overflow of a request body: bytes that uWS delivers although the connection is paused. They are kept in order until
// they are read, on disk as far as the disk accepts them. The file has no name, so nothing remains on disk after a
// crash.
//
// Within one callback uWS continues to read, paused or not, as long as each read fills its receive buffer; a client on
// the same machine can fill it a hundred times in a row. What arrives within one callback therefore waits in memory
// until Node's thread pool has written it (at most 16 of 60 MB in ten floods, measured); the event loop never waits for
// the disk. Completions of writes arrive only after the callback; until then the file's size shows the progress.
import { randomUUID } from "node:crypto"
import { close, fstatSync, mkdirSync, openSync, readv, unlinkSync, write } from "node:fs"
import { join } from "node:path"
import { type BodyBlocks, blockBytes } from "#http/BodyBlocks.ts"

/** Blocks read back at a time: each read takes a tick of the event loop. */
const readBlocks = 4

export class BodySpill {
  readonly #fd: number
  readonly #blocks: BodyBlocks
  readonly #onMemory: (changeBytes: number) => void
  /** Bytes that come after those in the file and in `writing`, in order. */
  #waiting: Array<Uint8Array> = []
  #writing: Uint8Array | undefined
  #reading = false
  #ahead: Promise<ReadonlyArray<Uint8Array>> | undefined
  #writtenBytes = 0
  #readBytes = 0
  /** The disk accepts no more; further bytes stay in memory. */
  #full = false
  #closed = false
  #fileClosed = false
  #onWritten: (() => void) | undefined

  /**
   * @param onMemory called with every change of the number of bytes that are not on disk
   * @throws if the folder cannot be written
   */
  constructor(folder: string, blocks: BodyBlocks, onMemory: (changeBytes: number) => void) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const path = join(folder, `${randomUUID()}.body`)
    this.#fd = openSync(path, "wx+", 0o600)
    unlinkSync(path)
    this.#blocks = blocks
    this.#onMemory = onMemory
  }

  get empty(): boolean {
    return (
      this.#ahead === undefined &&
      this.#readBytes === this.#writtenBytes &&
      this.#writing === undefined &&
      this.#waiting.length === 0
    )
  }

  /** Copies the bytes. Runs inside uWS's callback. */
  append(bytes: Uint8Array): void {
    const last = this.#waiting.at(-1)
    const longer = last === undefined ? undefined : this.#blocks.append(last, bytes)
    if (longer === undefined) this.#waiting.push(this.#blocks.copy(bytes))
    else this.#waiting[this.#waiting.length - 1] = longer
    this.#onMemory(bytes.length)
    this.#write()
  }

  /**
   * The next pieces, whose blocks the reader may return to the pool. Empty once closed. One call at a time, only while
   * there is data.
   */
  async next(): Promise<ReadonlyArray<Uint8Array>> {
    while (!this.#readable && this.#writing !== undefined && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#onWritten = resolve
      })
    }
    if (this.#closed) return []
    if (this.#readable) {
      const pieces = await (this.#ahead ?? this.#readBack())
      this.#ahead = undefined
      if (!this.#closed && this.#readable) this.#readAhead()
      return pieces
    }
    const pieces = this.#waiting.splice(0, readBlocks)
    for (const piece of pieces) this.#onMemory(-piece.length)
    return pieces
  }

  /** Discards everything. A pending `next` resolves with no pieces. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const piece of this.#waiting.splice(0)) this.#drop(piece)
    this.#closeFile()
    this.#onWritten?.()
  }

  /**
   * Waits for pending I/O: the descriptor's number could otherwise be reused for another file, which that I/O would
   * hit.
   */
  #closeFile(): void {
    if (!this.#closed || this.#fileClosed || this.#writing !== undefined || this.#reading) return
    this.#fileClosed = true
    close(this.#fd)
  }

  #drop(piece: Uint8Array): void {
    this.#blocks.giveBack(piece)
    this.#onMemory(-piece.length)
  }

  /** True if data is in the file or being read from it. */
  get #readable(): boolean {
    return this.#ahead !== undefined || this.#readBytes < this.#writtenBytes
  }

  /** Reads the next pieces while the reader works on the last ones. */
  #readAhead(): void {
    this.#ahead = this.#readBack()
    // A failure is reported by the `next` that awaits it, if there is one.
    this.#ahead.catch(() => {})
  }

  #readBack(): Promise<ReadonlyArray<Uint8Array>> {
    const pieces: Array<Uint8Array> = []
    let wantedBytes = 0
    while (pieces.length < readBlocks && this.#readBytes + wantedBytes < this.#writtenBytes) {
      const piece = this.#blocks.take(
        Math.min(blockBytes, this.#writtenBytes - this.#readBytes - wantedBytes),
      )
      pieces.push(piece)
      wantedBytes += piece.length
    }
    this.#reading = true
    return new Promise((resolve, reject) => {
      readv(this.#fd, pieces, this.#readBytes, (error, count) => {
        this.#reading = false
        this.#closeFile()
        if (error === null && count === wantedBytes) {
          this.#readBytes += count
          resolve(pieces)
        } else reject(error ?? new Error("a file has become shorter"))
      })
    })
  }

  /**
   * Starts the next write when the last has completed. One at a time, because the file's size only shows the progress
   * of the first.
   */
  #write(): void {
    if (this.#writing !== undefined && fstatSync(this.#fd).size >= this.#writtenBytes + this.#writing.length)
      this.#written(this.#writing)
    if (this.#writing !== undefined || this.#full || this.#closed) return
    const piece = this.#waiting.shift()
    if (piece === undefined) return
    this.#writing = piece
    write(this.#fd, piece, 0, piece.length, this.#writtenBytes, (error, count) => {
      if (this.#writing === piece) {
        if (this.#closed || (error === null && count === piece.length)) this.#written(piece)
        else this.#keep(piece)
      }
      this.#write()
      this.#closeFile()
    })
  }

  #written(piece: Uint8Array): void {
    this.#writing = undefined
    this.#writtenBytes += piece.length
    this.#drop(piece)
    this.#onWritten?.()
  }

  /** Keeps a piece in memory that was not or not wholly written. */
  #keep(piece: Uint8Array): void {
    this.#full = true
    this.#writing = undefined
    this.#waiting.unshift(piece)
    this.#onWritten?.()
  }
}
