// Collects small pieces of a body in blocks: an array of its own would cost each piece 200 bytes and a hundred times
// the work of copying it.

const firstBlockBytes = 4 * 1024
const lastBlockBytes = 64 * 1024

export class SmallPieces {
  #block = new Uint8Array(0)
  #startAt = 0
  #endAt = 0

  /** Adds a copy of the piece. If it does not fit into the block, returns the finished bytes of that block. */
  add(bytes: Uint8Array): Uint8Array | undefined {
    let finished: Uint8Array | undefined
    if (this.#endAt + bytes.length > this.#block.length) {
      finished = this.take()
      const sizeBytes = Math.min(Math.max(this.#block.length * 2, firstBlockBytes), lastBlockBytes)
      this.#block = new Uint8Array(Math.max(sizeBytes, bytes.length))
      this.#startAt = 0
      this.#endAt = 0
    }
    this.#block.set(bytes, this.#endAt)
    this.#endAt += bytes.length
    return finished
  }

  /** Everything added since the last call, as one array; later pieces are written after it. */
  take(): Uint8Array | undefined {
    if (this.#startAt === this.#endAt) return undefined
    const taken = this.#block.subarray(this.#startAt, this.#endAt)
    this.#startAt = this.#endAt
    return taken
  }
}
