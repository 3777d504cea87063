// Small pieces of bytes that wait, in blocks of memory outside of the heap: as texts or arrays of their own, thousands that wait for seconds
// would be copied by the collector again and again. A block is free as soon as its last piece is taken. Pure but for the memory.
import { freeMemory } from "./FreeMemory.ts"

/** Above what `malloc` keeps for itself: the memory of a free block goes back to the system. */
export const blockBytes = 256 * 1024

class Block {
  /** Not filled with zeros, which would take as long as to fill it with pieces. */
  readonly bytes = new Uint8Array(Buffer.allocUnsafeSlow(blockBytes).buffer)
  used = 0
  /** Pieces that are not taken yet. */
  waiting = 0
}

export class KeptPiece {
  readonly #block: Block
  readonly #bytes: Uint8Array

  constructor(block: Block, bytes: Uint8Array) {
    this.#block = block
    this.#bytes = bytes
  }

  /** What `read` makes of the bytes, which are gone afterwards. Once. */
  take<A>(read: (bytes: Uint8Array) => A): A {
    const made = read(this.#bytes)
    if (--this.#block.waiting === 0) freeMemory(this.#block.bytes)
    return made
  }
}

export class KeptPieces {
  #block: Block | undefined

  /** A copy of a piece, which has at most `blockBytes`. */
  keep(piece: Uint8Array): KeptPiece {
    const last = this.#block
    const hasRoom = last !== undefined && last.waiting > 0 && last.used + piece.length <= blockBytes
    const block = hasRoom ? last : new Block()
    this.#block = block
    const bytes = block.bytes.subarray(block.used, block.used + piece.length)
    bytes.set(piece)
    block.used += piece.length
    block.waiting++
    return new KeptPiece(block, bytes)
  }
}
