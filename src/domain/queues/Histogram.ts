// A histogram in memory that is allocated once: recording a value is a short search and two additions.

/**
 * Upper bounds for times, milliseconds, from the gap between tokens to the load of a model. A guess; about three per
 * decade, so that a quantile read from it is right to a factor of 2.5.
 */
export const timeBoundsMs: ReadonlyArray<number> = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
]

export class Histogram {
  /** Ascending. A value is counted at the first bound that it does not exceed. */
  readonly bounds: ReadonlyArray<number>
  /** Counts by bound, not cumulative; the last counts values above all bounds. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: ReadonlyArray<number> = timeBoundsMs) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** Adds one value. NaN is ignored. */
  record(value: number): void {
    if (Number.isNaN(value)) return
    const { bounds } = this
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    this.counts[at]!++
    this.sum += value
  }

  get count(): number {
    let count = 0
    for (const one of this.counts) count += one
    return count
  }
}
