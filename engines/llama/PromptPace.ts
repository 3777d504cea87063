// How many prompt tokens fit into one slice of time, learnt from the steps measured so far. Called by StepLoop.
// Pure: the clock is the caller's.
//
// Time is kept for each size, powers of two, because a token is cheaper in a larger slice, sometimes ten times: a
// single average settles at tiny slices after one slow step and never finds out what larger ones would cost.

/** First guess, before anything was measured: 32 tokens, which even 3 ms a token keeps under 100 ms. */
const firstSize = 5

/** Every so many slices the next larger size is tried, so that an old or unlucky measurement is corrected. A guess. */
const probeEvery = 16

/**
 * A slice may take up to `stretch` times its time where it makes a token `worth` times cheaper: attention kernels have
 * sizes below which they fall off a cliff (flash attention on a processor: 64 tokens, 5 ms a token below).
 */
const stretch = 2
const worth = 4

/**
 * Beside running replies a slice may take this many times one of their own steps, so that a long prompt stretches the
 * gaps between their tokens by little; and this long in any case, because below it the price of a step eats the prompt.
 * A slice of 4 ms doubled the time of a 2,000-token prompt on the demonstration weights (measured). Larger models have
 * longer steps, and the slice is theirs again.
 */
const besideReplySteps = 4
const besideRepliesMs = 4

/** Weight of the newest measurement. A guess: fast enough to follow a machine that gets busy. */
const newest = 0.5

export class PromptPace {
  readonly #sliceMs: number
  readonly #maxTokens: number
  /** Milliseconds of a step of 1, 2, 4, … tokens, where measured. */
  readonly #elapsedMs: Array<number | undefined> = []
  #slices = 0
  /** Milliseconds of a step that only replies took part in. */
  #replyMs: number | undefined
  #budgetMs = 0

  constructor(options: { readonly sliceMs: number; readonly maxTokens: number }) {
    this.#sliceMs = options.sliceMs
    this.#maxTokens = options.maxTokens
  }

  /** Prompt tokens for the next slice, at least 1. `besideReplies`: running replies wait for it. */
  nextSliceTokens(besideReplies = false): number {
    this.#budgetMs =
      besideReplies && this.#replyMs !== undefined
        ? Math.min(this.#sliceMs, Math.max(besideRepliesMs, besideReplySteps * this.#replyMs))
        : this.#sliceMs
    const largest = Math.floor(Math.log2(this.#maxTokens))
    let size = this.#elapsedMs.length === 0 ? firstSize : this.#fitting(largest)
    if (++this.#slices % probeEvery === 0) size++
    return size >= largest ? this.#maxTokens : 2 ** size
  }

  /** One step evaluated `tokens` tokens in `elapsedMs`. */
  observe(tokens: number, elapsedMs: number): void {
    const size = Math.round(Math.log2(tokens))
    const measured = (elapsedMs / tokens) * 2 ** size
    const before = this.#elapsedMs[size]
    this.#elapsedMs[size] = before === undefined ? measured : newest * measured + (1 - newest) * before
  }

  /** One step of replies alone. */
  observeReplies(elapsedMs: number): void {
    this.#replyMs =
      this.#replyMs === undefined ? elapsedMs : newest * elapsedMs + (1 - newest) * this.#replyMs
  }

  #fitting(largest: number): number {
    let fitting = 0
    for (let size = 0; size <= largest; size++) if (this.#expectedMs(size) <= this.#budgetMs) fitting = size
    let best = fitting
    for (let size = fitting + 1; size <= largest; size++) {
      const elapsedMs = this.#expectedMs(size)
      const cheaper = (this.#expectedMs(fitting) / elapsedMs) * 2 ** (size - fitting)
      if (elapsedMs <= stretch * this.#budgetMs && cheaper >= worth) best = size
    }
    return best
  }

  /**
   * As measured; else as if proportional to the next smaller measured size; else between proportional and equal to the
   * next larger one, which is soon corrected by trying.
   */
  #expectedMs(size: number): number {
    for (let smaller = size; smaller >= 0; smaller--) {
      const measured = this.#elapsedMs[smaller]
      if (measured !== undefined) return measured * 2 ** (size - smaller)
    }
    const larger = this.#elapsedMs.findIndex((measured) => measured !== undefined)
    return larger < 0 ? 0 : this.#elapsedMs[larger]! * 2 ** ((size - larger) / 2)
  }
}
