// Reads parts of a large file in small pieces: weight checks read headers and skip what lies between them. Each piece
// is read asynchronously, so a check never blocks the event loop. The file may be on another machine.
import { open } from "node:fs/promises"

const pieceBytes = 32 * 1024

/** Where the bytes come from. */
export interface ByteSource {
  readonly sizeBytes: number
  /** Bytes that are read at once, at least 32 KiB. */
  readonly pieceBytes: number
  /** The bytes from `at`; fewer than `count` if the file ends there. */
  readonly read: (at: number, count: number) => Promise<Buffer>
}

/** The file is shorter than its header says. */
export class EndOfFile extends Error {
  readonly neededBytes: number
  constructor(neededBytes: number) {
    super("the file ends too early")
    this.neededBytes = neededBytes
  }
}

export class FileReader {
  readonly sizeBytes: number
  readonly #source: ByteSource
  #piece: Buffer = Buffer.alloc(0)
  /** File offset of `piece`. */
  #pieceAt = 0
  /** File offset of the next read. */
  position = 0

  constructor(source: ByteSource) {
    this.#source = source
    this.sizeBytes = source.sizeBytes
  }

  /** Runs `read` over the file and closes it. Fails with the file system's error or with `EndOfFile`. */
  static async over<A>(path: string, read: (reader: FileReader) => Promise<A>): Promise<A> {
    const file = await open(path, "r")
    try {
      const readAt = async (at: number, count: number): Promise<Buffer> => {
        const into = Buffer.allocUnsafe(count)
        let filled = 0
        while (filled < count) {
          const { bytesRead } = await file.read(into, filled, count - filled, at + filled)
          if (bytesRead === 0) break
          filled += bytesRead
        }
        return into.subarray(0, filled)
      }
      return await read(new FileReader({ sizeBytes: (await file.stat()).size, pieceBytes, read: readAt }))
    } finally {
      await file.close()
    }
  }

  /** The next `count` bytes (at most 32 KiB), valid until the next call. */
  async bytes(count: number): Promise<Buffer> {
    const end = this.position + count
    if (end > this.sizeBytes) throw new EndOfFile(end)
    if (this.position < this.#pieceAt || end > this.#pieceAt + this.#piece.length) await this.#fill()
    const from = this.position - this.#pieceAt
    const found = this.#piece.subarray(from, from + count)
    if (found.length < count) throw new EndOfFile(end)
    this.position = end
    return found
  }

  /** Skips bytes. May skip beyond the end of the file; the next read then fails. */
  skip(count: number): void {
    this.position += count
  }

  async uint32(): Promise<number> {
    return (await this.bytes(4)).readUInt32LE()
  }

  /** Exact up to 2^53. No file is larger. */
  async uint64(): Promise<number> {
    return Number((await this.bytes(8)).readBigUInt64LE())
  }

  async #fill(): Promise<void> {
    const count = Math.min(this.#source.pieceBytes, this.sizeBytes - this.position)
    this.#piece = await this.#source.read(this.position, count)
    this.#pieceAt = this.position
  }
}
