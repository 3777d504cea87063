// Drops the silence with which a synthesised answer begins, because the listener would wait through it. Pure. s16.

/** Samples quieter than this are silence: −40 dB of full scale. A guess. */
const quiet = 328

/** Kept before the first sound, so that it does not begin with a click. A guess. */
const keptMs = 5

/** Longest silence that is dropped. A guess: built-in and published voices begin with 20 to 300 ms. */
const mostMs = 400

export class LeadingSilence {
  readonly #kept: number
  #left: number
  #sounds = false

  constructor(rateHz: number) {
    this.#kept = (keptMs * rateHz) / 1000
    this.#left = (mostMs * rateHz) / 1000
  }

  /** The samples without what is dropped of them. */
  push(samples: Int16Array): Int16Array {
    if (this.#sounds) return samples
    const first = samples.findIndex((sample) => Math.abs(sample) > quiet)
    const silent = Math.min(this.#left, first < 0 ? samples.length : Math.max(0, first - this.#kept))
    this.#left -= silent
    this.#sounds = first >= 0 || this.#left === 0
    return silent === 0 ? samples : samples.subarray(silent)
  }
}
