// Reusable memory blocks for large request bodies: a copy of a delivery would otherwise be garbage of half a megabyte
// that V8 collects late, because it lies outside its heap. A reader that has finished with a block, and holds the only
// reference to it, gives it back. A block that is never given back is ordinary garbage.
import { Context } from "effect"

/** What uWS delivers at most at a time: its receive buffer. */
export const blockBytes = 512 * 1024
/** Blocks kept for the next body: what a body holds in memory at most (see TransportSettings) and what is being read. */
const keptBlocks = 20

export class BodyBlocks {
  readonly #free: Array<Uint8Array> = []
  /** The block behind each piece that is in use. */
  readonly #lent = new WeakMap<Uint8Array, Uint8Array>()

  /** A piece of that many bytes, at most `blockBytes`; its content is undefined. */
  take(sizeBytes: number): Uint8Array {
    return this.#lend(
      this.#free.pop() ?? new Uint8Array(Buffer.allocUnsafeSlow(blockBytes).buffer),
      sizeBytes,
    )
  }

  copy(bytes: Uint8Array): Uint8Array {
    if (bytes.length > blockBytes) return bytes.slice()
    const piece = this.take(bytes.length)
    piece.set(bytes)
    return piece
  }

  /** The piece with `bytes` appended, if its block has capacity; the old piece must not be used any more. */
  append(piece: Uint8Array, bytes: Uint8Array): Uint8Array | undefined {
    const block = this.#lent.get(piece)
    if (block === undefined || piece.length + bytes.length > blockBytes) return undefined
    this.#lent.delete(piece)
    block.set(bytes, piece.length)
    return this.#lend(block, piece.length + bytes.length)
  }

  /**
   * Takes back a piece whose content is no longer needed. Parts of pieces, and arrays that never came from here, are
   * ignored: other parts of the same block may still be in use.
   */
  giveBack(piece: Uint8Array): void {
    const block = this.#lent.get(piece)
    if (block === undefined) return
    this.#lent.delete(piece)
    if (this.#free.length < keptBlocks) this.#free.push(block)
  }

  /** Number of free blocks. */
  get freeBlocks(): number {
    return this.#free.length
  }

  #lend(block: Uint8Array, sizeBytes: number): Uint8Array {
    const piece = block.subarray(0, sizeBytes)
    this.#lent.set(piece, block)
    return piece
  }
}

/** The blocks of this process. */
export const RequestBlocks = Context.Reference<BodyBlocks>("edgewise/api/RequestBlocks", {
  defaultValue: () => new BodyBlocks(),
})
