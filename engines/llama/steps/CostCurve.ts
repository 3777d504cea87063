// What one native call takes, by its size (prompt tokens, or replies that get a token each), learnt from the calls made
// so far. Pure: the clock is the caller's. Used by StepPlan; first filled by MeasureCosts.
//
// Calls are not proportional to their size: kernels want 8, 16 or 64 rows and are several times slower per row below
// (0.2 B parameters, Q8_0, one thread: 1 token 10 ms, 2 tokens 22 ms, 16 tokens 36 ms, 64 tokens 107 ms). So a duration
// is kept for each power of two and read between them.

/**
 * How much of a deviation a measurement corrects: at its own size, and at all others, which a machine that becomes busy
 * slows down too. Guesses; a machine that takes twice as long is known after some five calls.
 */
const ownWeight = 0.3
const otherWeight = 0.15

/** A single call counts as at most this many times slower or faster than expected. A guess. */
const largestDeviation = 4

/** Where nothing was measured yet, in milliseconds a unit: the 3 ms a token of a small model on a slow processor. A guess. */
const unknownMs = 3

/** No call takes less: ratios of durations are formed here. */
const leastMs = 0.001

/** Below the smallest measured size a call takes this power of its size: between in proportion (1) and the same (0). */
const belowExponent = 0.5

export class CostCurve {
  readonly #sizes: ReadonlyArray<number>
  readonly #durations: Array<number | undefined> = []

  /** Sizes up to `largest`. */
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

  /** Milliseconds of a call of this size: measured, read between measured sizes, or extended from the nearest one. */
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

  /** No call takes longer than a larger one: what says so was disturbed. */
  #atMost(index: number): number {
    let least = Number.POSITIVE_INFINITY
    for (const duration of this.#durations.slice(index))
      if (duration !== undefined) least = Math.min(least, duration)
    return least
  }

  /** By ratio, so that 48 belongs to 64 and not to 32. */
  #nearest(size: number): number {
    let nearest = 0
    for (const [index, gridSize] of this.#sizes.entries())
      if (Math.abs(Math.log(gridSize / size)) <= Math.abs(Math.log(this.#sizes[nearest]! / size)))
        nearest = index
    return nearest
  }
}
