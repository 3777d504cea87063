// Fair turns for large bodies: how many bytes of them one turn of the event loop hands to the kernel, and who is next.
// One for each listener; asked by FixedLengthReply before every piece. Knows neither sockets nor HTTP.
//
// The kernel takes up to `tcp_wmem` (4 MB by default) of a body at once, read or not: a thousand clients that ask for a
// page of 3 MB and read none of it kept others waiting for up to 2.5 s (measured, slowhttptest -X).

/** What is handed over at once before somebody else's turn. */
export const PIECE_BYTES = 64 * 1024

/**
 * In one turn. The kernel takes 1 MB in 0.4 ms where the reader reads, and in 2 ms where its window is tiny and every
 * segment a page of its own (measured).
 */
const TURN_BYTES = 512 * 1024

export interface Taker {
  /** One piece is granted: ask for it, hand it over, and ask again. */
  readonly proceed: () => void
}

export class FairSendQueue {
  /** In the order of their turns. */
  private readonly waiting = new Set<Taker>()
  private leftBytes = TURN_BYTES
  private granted: Taker | undefined
  private scheduled = false

  /** Whether one piece may go now. If not, `proceed` is called in a later turn. */
  mayGo(one: Taker): boolean {
    this.schedule()
    const atOnce = this.granted === one || (this.waiting.size === 0 && this.leftBytes > 0)
    if (this.granted === one) this.granted = undefined
    if (atOnce) this.leftBytes -= PIECE_BYTES
    else this.waiting.add(one)
    return atOnce
  }

  /** It has ended, or waits for its reader. */
  leave(one: Taker): void {
    this.waiting.delete(one)
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    setImmediate(this.turn)
  }

  private readonly turn = (): void => {
    this.scheduled = false
    this.leftBytes = TURN_BYTES
    // Whoever asks again goes to the end of the set, which this very loop may still come to.
    for (const one of this.waiting) {
      if (this.leftBytes <= 0) break
      this.waiting.delete(one)
      this.granted = one
      one.proceed()
      this.granted = undefined
    }
    if (this.waiting.size > 0) this.schedule()
  }
}
