// The expected duration of one native call by its size (prompt tokens, or replies that get one token each), learnt from
// the calls made so far. Pure: the caller measures.
//
// Duration is not proportional to size: kernels work on 8, 16 or 64 rows and are several times slower per row below
// (0.2 B parameters, Q8_0, one thread: 1 token 10 ms, 2 tokens 22 ms, 16 tokens 36 ms, 64 tokens 107 ms). So one
// duration is kept for each power of two, with interpolation between them.

/**
 * How much of a deviation one measurement corrects: at its own size, and at all other sizes, because a busy machine slows
 * down all of them. Guesses; a machine that takes twice as long is recognised after about five calls.
 */
const ownWeight = 0.3
const otherWeight = 0.15

/** A single call counts as at most this many times slower or faster than expected. A guess. */
const largestDeviation = 4

/** Milliseconds a unit where nothing was measured yet: the 3 ms a token of a small model on a slow processor. A guess. */
const unknownMs = 3

/** Lower bound of a duration in milliseconds, because ratios of durations are computed here. */
const leastMs = 0.001

/** Below the smallest measured size the duration is this power of the size: between proportional (1) and constant (0). */
const belowExponent = 0.5

export class CostCurve {
  readonly #sizes: ReadonlyArray<number>
  readonly #durations: Array<number | undefined> = []

  /** `largest`: the largest size. */
  constructor(largest: number) {
    const sizes = [1]
    while (sizes.at(-1)! * 2 < largest) sizes.push(sizes.at(-1)! * 2)
    this.#sizes = largest > 1 ? [...sizes, largest] : sizes
  }

  get largest(): number {
    return this.#sizes.at(-1)!
  }

  /** The powers of two at which durations are kept, and the largest size. */
  get sizes(): ReadonlyArray<number> {
    return this.#sizes
  }

  /** Whether a call of about this size was observed. */
  isMeasured(size: number): boolean {
    return this.#durations[this.#nearest(size)] !== undefined
  }

  /** One call of this size took `elapsedMs`. */
  observe(size: number, measuredMs: number): void {
    const elapsedMs = Math.max(leastMs, measuredMs)
    const at = this.#nearest(size)
    const expected = this.expectedMs(size)
    if (this.#durations[at] === undefined) {
      this.#durations[at] = this.expectedMs(this.#sizes[at]!) * (elapsedMs / expected)
      return
    }
    const deviation = Math.min(largestDeviation, Math.max(1 / largestDeviation, elapsedMs / expected))
    for (const [index, duration] of this.#durations.entries())
      if (duration !== undefined)
        this.#durations[index] = duration * deviation ** (index === at ? ownWeight : otherWeight)
  }

  /** Milliseconds of a call of this size: measured, interpolated, or extrapolated from the nearest measured size. */
  expectedMs(size: number): number {
    let below = -1
    let above = -1
    for (const [index, gridSize] of this.#sizes.entries()) {
      if (this.#durations[index] === undefined) continue
      if (gridSize <= size) below = index
      if (gridSize >= size && above < 0) above = index
    }
    if (below < 0 && above < 0) return unknownMs * size
    if (above < 0) return (this.#atMost(below) * size) / this.#sizes[below]!
    if (below < 0) return this.#atMost(above) * (size / this.#sizes[above]!) ** belowExponent
    if (above === below) return this.#atMost(below)
    const [from, to] = [this.#sizes[below]!, this.#sizes[above]!]
    const part = (size - from) / (to - from)
    return this.#atMost(below) * (1 - part) + this.#atMost(above) * part
  }

  /** The duration at `index`, at most that of any larger size: a larger value was a disturbed measurement. */
  #atMost(index: number): number {
    let least = Number.POSITIVE_INFINITY
    for (const duration of this.#durations.slice(index))
      if (duration !== undefined) least = Math.min(least, duration)
    return least
  }

  /** Index of the nearest kept size by ratio: 48 belongs to 64, not to 32. */
  #nearest(size: number): number {
    let nearest = 0
    for (const [index, gridSize] of this.#sizes.entries())
      if (Math.abs(Math.log(gridSize / size)) <= Math.abs(Math.log(this.#sizes[nearest]! / size)))
        nearest = index
    return nearest
  }
}
