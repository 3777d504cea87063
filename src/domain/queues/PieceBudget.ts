// Limits the number of small pieces of a body. Each piece costs the event loop some time whatever its size, and a
// chunked body may have one byte per chunk: 8 million of them in 8 MB. One budget per body. Pure.

interface PieceLimits {
  /** Pieces that a body may have at any size. */
  readonly free: number
  /** Mean size that is required of all pieces beyond that number. */
  readonly meanBytes: number
}

/**
 * Guesses. 4,096 pieces are as many tokens or lines written one by one; the mean is about ten times the framing of a
 * chunk. A piece of a request costs 1 to 2 µs (measured).
 */
export const requestPieces: PieceLimits = { free: 4_096, meanBytes: 64 }

/** Pieces allowed in one tick, in addition to one per `tickPieceBytes`: 10 ms of the event loop at most. */
const tickPieces = 8_192
const tickPieceBytes = 1_024

export class PieceBudget {
  readonly #limits: PieceLimits
  #pieces = 0
  #bytes = 0
  #tick = -1
  #tickPieces = 0
  #tickBytes = 0

  constructor(limits: PieceLimits) {
    this.#limits = limits
  }

  /**
   * Counts a piece. Returns why the body must be refused, if it must. `tick` is any number that changes with each tick
   * of the event loop.
   */
  take(sizeBytes: number, tick: number): string | undefined {
    const { free, meanBytes } = this.#limits
    this.#pieces++
    this.#bytes += sizeBytes
    if (tick !== this.#tick) {
      this.#tick = tick
      this.#tickPieces = 0
      this.#tickBytes = 0
    }
    this.#tickPieces++
    this.#tickBytes += sizeBytes
    if (this.#pieces > free && this.#bytes < this.#pieces * meanBytes) {
      return `comes in ${this.#pieces} pieces of less than ${meanBytes} bytes on average`
    }
    return this.#tickPieces > tickPieces + this.#tickBytes / tickPieceBytes
      ? "comes in too many small pieces at once"
      : undefined
  }
}
