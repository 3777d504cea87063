// Shares the sending of large bodies fairly: limits the bytes handed to the kernel per tick of the event loop and
// decides which body is next. One for each listener.
//
// The kernel accepts up to `tcp_wmem` (4 MB by default) of a body at once, read or not: a thousand clients that
// requested a page of 3 MB and read none of it delayed others by up to 2.5 s (measured, slowhttptest -X).

/** Bytes of one body before another body is next. */
export const pieceBytes = 64 * 1024

/**
 * Bytes per tick. The kernel takes 1 MB in 0.4 ms if the client reads, and in 2 ms if its window is tiny and every
 * segment takes a page of its own (measured).
 */
const tickBytes = 512 * 1024

export interface FairSender {
  /** One piece is granted: the body calls `maySend`, hands the piece over, and calls `maySend` again. */
  readonly proceed: () => void
}

export class FairSendQueue {
  /** In the order in which they are served. */
  readonly #waiting = new Set<FairSender>()
  #leftBytes = tickBytes
  #granted: FairSender | undefined
  #scheduled = false

  /** True if one piece may be sent now. If not, `proceed` is called in a later tick. */
  maySend(one: FairSender): boolean {
    this.#schedule()
    const atOnce = this.#granted === one || (this.#waiting.size === 0 && this.#leftBytes > 0)
    if (this.#granted === one) this.#granted = undefined
    if (atOnce) this.#leftBytes -= pieceBytes
    else this.#waiting.add(one)
    return atOnce
  }

  /** The body has ended, or waits for its reader. */
  leave(one: FairSender): void {
    this.#waiting.delete(one)
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#nextTick)
  }

  readonly #nextTick = (): void => {
    this.#scheduled = false
    this.#leftBytes = tickBytes
    // A body that calls `maySend` again goes to the end of the set, which this loop may still reach.
    for (const one of this.#waiting) {
      if (this.#leftBytes <= 0) break
      this.#waiting.delete(one)
      this.#granted = one
      one.proceed()
      this.#granted = undefined
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}
