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

/** Weight of the newest measurement. A guess: fast enough to follow a machine that gets busy. */
const newest = 0.5

export class PromptPace {
  readonly #sliceMs: number
  readonly #maxTokens: number
  /** Milliseconds of a step of 1, 2, 4, … tokens, where measured. */
  readonly #elapsedMs: Array<number | undefined> = []
  #slices = 0

  constructor(options: { readonly sliceMs: number; readonly maxTokens: number }) {
    this.#sliceMs = options.sliceMs
    this.#maxTokens = options.maxTokens
  }

  /** Prompt tokens for the next slice, at least 1. */
  nextSliceTokens(): number {
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

  #fitting(largest: number): number {
    let fitting = 0
    for (let size = 0; size <= largest; size++) if (this.#expectedMs(size) <= this.#sliceMs) fitting = size
    let best = fitting
    for (let size = fitting + 1; size <= largest; size++) {
      const elapsedMs = this.#expectedMs(size)
      const cheaper = (this.#expectedMs(fitting) / elapsedMs) * 2 ** (size - fitting)
      if (elapsedMs <= stretch * this.#sliceMs && cheaper >= worth) best = size
    }
    return best
  }

  /** As measured; else as if proportional to the next smaller measured size, or equal to the next larger one. */
  #expectedMs(size: number): number {
    for (let smaller = size; smaller >= 0; smaller--) {
      const measured = this.#elapsedMs[smaller]
      if (measured !== undefined) return measured * 2 ** (size - smaller)
    }
    return this.#elapsedMs.find((measured) => measured !== undefined) ?? 0
  }
}
