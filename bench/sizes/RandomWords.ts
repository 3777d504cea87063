// Pseudo-random 32-bit words for generated weights: fast enough for gigabytes, and the same for the same seed. Pure.

/** xorshift32: its period is 2^32 - 1 words. */
export class RandomWords {
  #state: number

  constructor(seed: number) {
    // The state must not be zero, and the first words of small seeds should differ.
    this.#state = Math.imul(seed + 1, 0x9e37_79b1) | 1
  }

  /** A signed 32-bit integer, never zero. */
  next(): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state
    return state
  }

  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number {
    return (this.next() >>> 0) % bound
  }

  fill(words: Int32Array): void {
    let state = this.#state
    for (let at = 0; at < words.length; at++) {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      words[at] = state
    }
    this.#state = state
  }
}
