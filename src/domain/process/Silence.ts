// Whether a process that does not answer is hung. One long native call blocks its event loop, on a busy machine for many
// times as long as on a quiet one, so processor time tells a call that computes from a process that waits for ever. Pure
// but for its own state; times come in as numbers.

/** A process computes if it gets this share of a core: above what helper threads use, below what a busy machine leaves. */
const leastShare = 0.02

/**
 * Most processor time of one silence, as a multiple of the deadline: an endless loop ends there. With the default deadline it
 * is 120 s. A window of Whisper large-v3-turbo in fp32 needs 15 s of a core of a server processor, so a core may be eight
 * times slower. A guess.
 */
export const mostProcessorTime = 8

interface Reading {
  readonly nowMs: number
  /** When its last message arrived. */
  readonly receivedMs: number
  /** Processor time of all its threads so far, milliseconds; undefined if the system does not report it. */
  readonly processorMs: number | undefined
}

export class Silence {
  readonly #deadlineMs: number
  readonly #longestMs: number
  #receivedMs = Number.NEGATIVE_INFINITY
  #begunProcessorMs: number | undefined
  #readMs: number | undefined
  /** The last time at which it computed or sent a message, and its processor time then. */
  #activeMs = 0
  #activeProcessorMs = 0

  /**
   * @param deadlineMs longest silence without computing
   * @param longestMs longest silence of all
   */
  constructor(deadlineMs: number, longestMs: number) {
    this.#deadlineMs = deadlineMs
    this.#longestMs = Math.max(deadlineMs, longestMs)
  }

  /** Why the process counts as hung; undefined while it does not. Called a few times in every deadline. */
  hungBecause({ receivedMs, nowMs, processorMs }: Reading): string | undefined {
    if (receivedMs !== this.#receivedMs) {
      this.#receivedMs = receivedMs
      this.#activeMs = receivedMs
      this.#begunProcessorMs = undefined
    }
    const usedMs = processorMs === undefined ? 0 : this.#use(processorMs, nowMs)
    // A late reading: the reader itself did not run, and an answer of the process may wait unread.
    const isLate = nowMs - (this.#readMs ?? nowMs) > this.#deadlineMs / 2
    this.#readMs = nowMs
    if (isLate) return undefined
    const silentMs = nowMs - receivedMs
    const silent = `silent for ${Math.round(silentMs)} ms`
    if (usedMs > mostProcessorTime * this.#deadlineMs) {
      return `${silent}, with ${Math.round(usedMs)} ms of processor time`
    }
    if (silentMs > this.#longestMs || nowMs - this.#activeMs > this.#deadlineMs) return silent
    return undefined
  }

  /** Processor time since the first reading of this silence. */
  #use(processorMs: number, nowMs: number): number {
    if (this.#begunProcessorMs === undefined) {
      this.#begunProcessorMs = processorMs
      this.#activeProcessorMs = processorMs
    }
    const sinceActiveMs = processorMs - this.#activeProcessorMs
    if (sinceActiveMs > 0 && sinceActiveMs >= leastShare * (nowMs - this.#activeMs)) {
      this.#activeMs = nowMs
      this.#activeProcessorMs = processorMs
    }
    return processorMs - this.#begunProcessorMs
  }
}
