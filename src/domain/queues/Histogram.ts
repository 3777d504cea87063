// Counts values by size in memory that is allocated once: recording one is a short search and two additions. Read by
// /metrics. Knows no clock and no name.

/**
 * Upper bounds for times, milliseconds: from a token's gap to a model's load. A guess; about three a decade, so that a
 * quantile read from it is right to a factor of 2.5.
 */
export const timeBoundsMs: ReadonlyArray<number> = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
]

export class Histogram {
  /** Ascending; a value goes to the first that it does not exceed. */
  readonly bounds: ReadonlyArray<number>
  /** Values by bound, not cumulative; the last counts those above all bounds. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: ReadonlyArray<number> = timeBoundsMs) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** Takes note of one value; what is no number is nobody's value. */
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
