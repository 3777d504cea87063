// Memory for large request bodies on their way through, used again and again: a copy of a delivery would otherwise be
// garbage of half a megabyte that V8 collects late, because it lies outside its heap. RequestBody and BodySpill fill
// blocks; a reader that has finished with one, and knows that nobody else looks at it, gives it back. One that is never
// given back is ordinary garbage.
import { Context } from "effect"

/** What uWS delivers at most at a time: its receive buffer. */
export const blockBytes = 512 * 1024
/** Blocks kept for the next body: what a body holds in memory at most (see TransportSettings) and what is being read. */
const keptBlocks = 20

export class BodyBlocks {
  private readonly free: Array<Uint8Array> = []
  /** The block behind each piece that was handed out and not given back. */
  private readonly lent = new WeakMap<Uint8Array, Uint8Array>()

  /** A piece of that many bytes, at most `blockBytes`; what is in it is anybody's guess. */
  take(sizeBytes: number): Uint8Array {
    return this.lend(this.free.pop() ?? new Uint8Array(Buffer.allocUnsafeSlow(blockBytes).buffer), sizeBytes)
  }

  copy(bytes: Uint8Array): Uint8Array {
    if (bytes.length > blockBytes) return bytes.slice()
    const piece = this.take(bytes.length)
    piece.set(bytes)
    return piece
  }

  /** The piece with `bytes` behind it, where its block has room; the piece itself counts no longer then. */
  append(piece: Uint8Array, bytes: Uint8Array): Uint8Array | undefined {
    const block = this.lent.get(piece)
    if (block === undefined || piece.length + bytes.length > blockBytes) return undefined
    this.lent.delete(piece)
    block.set(bytes, piece.length)
    return this.lend(block, piece.length + bytes.length)
  }

  /**
   * Takes a piece back whose content nobody needs any more. Parts of pieces, and arrays that never came from here, are
   * left alone: whoever cut them may hold the rest.
   */
  giveBack(piece: Uint8Array): void {
    const block = this.lent.get(piece)
    if (block === undefined) return
    this.lent.delete(piece)
    if (this.free.length < keptBlocks) this.free.push(block)
  }

  /** Blocks that wait for the next body. */
  get freeBlocks(): number {
    return this.free.length
  }

  private lend(block: Uint8Array, sizeBytes: number): Uint8Array {
    const piece = block.subarray(0, sizeBytes)
    this.lent.set(piece, block)
    return piece
  }
}

/** Those of this process. */
export const RequestBlocks = Context.Reference<BodyBlocks>("edgewise/api/RequestBlocks", {
  defaultValue: () => new BodyBlocks(),
})
