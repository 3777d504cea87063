// What a bench says about repeated readings: the median and how far the readings lie apart. Called by every suite.
// Pure.

/** Repeated readings of one quantity, in that quantity's unit. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
  readonly readings: number
}

const ascending = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)

/** The value that `share` (0 to 1) of the values do not exceed: nearest rank. NaN of nothing. */
export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = ascending(values)
  const rank = Math.ceil(share * sorted.length)
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] ?? Number.NaN
}

/** The middle value, or the mean of the two middle ones. NaN of nothing. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = ascending(values)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? (upper + (sorted[middle - 1] ?? Number.NaN)) / 2 : upper
}

export const spreadOf = (values: ReadonlyArray<number>): Spread => ({
  median: median(values),
  low: Math.min(...values),
  high: Math.max(...values),
  readings: values.length,
})

/**
 * Subject over floor, reading by reading. Both were taken by turns, so a machine that was busy for a while was busy
 * for both halves of a pair. Throws where they are not pairs.
 */
export const pairedRatios = (
  subject: ReadonlyArray<number>,
  floor: ReadonlyArray<number>,
): ReadonlyArray<number> => {
  if (subject.length !== floor.length) throw new Error("readings without a partner")
  return subject.map((value, at) => value / (floor[at] ?? Number.NaN))
}
