// Statistics of repeated readings: the median and the spread. Pure.

/** Repeated readings of one quantity, in that quantity's unit. */
interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
  readonly readings: number
}

const ascending = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)

/** The smallest value that a `share` (0 to 1) of the values does not exceed: nearest rank. NaN for no values. */
export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = ascending(values)
  const rank = Math.ceil(share * sorted.length)
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] ?? Number.NaN
}

/** The middle value, or the mean of the two middle ones. NaN for no values. */
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
