// Pseudo-random numbers that depend only on a seed and an input's index, so that one input can be made again without
// those before it. Pure.

/** splitmix32. Its period is 2^32 numbers; an input takes a few hundred. */
export class Random {
  #state: number

  constructor(seed: number, index: number) {
    this.#state = (Math.imul(seed, 0x9e37_79b1) ^ Math.imul(index + 1, 0x85eb_ca77)) >>> 0
  }

  /** An integer from 0 to 2^32 - 1. */
  next(): number {
    this.#state = (this.#state + 0x9e37_79b9) >>> 0
    let value = this.#state
    value = Math.imul(value ^ (value >>> 16), 0x21f0_aaad)
    value = Math.imul(value ^ (value >>> 15), 0x735a_2d97)
    return (value ^ (value >>> 15)) >>> 0
  }

  /** An integer from 0 to `bound` - 1; 0 if the bound is less than 1. */
  below(bound: number): number {
    return bound < 1 ? 0 : this.next() % bound
  }

  /** True with probability 1 / `times`. */
  once(times: number): boolean {
    return this.below(times) === 0
  }

  pick<A>(list: readonly [A, ...ReadonlyArray<A>]): A {
    return list[this.below(list.length)] ?? list[0]
  }
}
