// Confidence intervals of a percentile or mean over requests, by resampling the measured ones. Requests that follow each
// other are not independent: a stall delays all of those that arrive during it. So whole blocks of consecutive requests
// are drawn (circular block bootstrap), which gives wider intervals than drawing single ones. Pure.
import { Random } from "../random/Random.ts"

export interface Interval {
  readonly value: number
  /** Bounds of the 95 % interval; NaN where none can be given (JSON has null). */
  readonly low: number
  readonly high: number
}

/** Below this number of requests nothing is said about their spread. A guess. */
const leastRequests = 10
/** Requests beyond a percentile, at least: from fewer, resampling cannot tell how far its estimate may be off. A guess. */
const leastBeyond = 2

const hasEnough = (statistic: Statistic, count: number): boolean =>
  count >= leastRequests && (statistic === "mean" || count * (1 - statistic / 100) >= leastBeyond - 1e-9)

/** What is estimated: a percentile (0 to 100, nearest rank) or the mean. */
export type Statistic = number | "mean"

/** Resamples; 1,000 is usual for intervals of 95 %. */
const mostResamples = 1_000
/** Draws for one statistic over all resamples: about 0.2 s (measured). */
const mostDraws = 2e7
const leastResamples = 100

const intervalShare = 0.95

/** Nearest rank, 0-based. */
const rankOf = (percentile: number, count: number): number =>
  Math.min(count - 1, Math.max(0, Math.ceil((percentile / 100) * count) - 1))

const meanOf = (values: ArrayLike<number>): number => {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[i]!
  return sum / values.length
}

/**
 * @param values one for each request, in the order of their schedule
 * @param statistics what to estimate
 * @returns an interval for each statistic; its bounds are NaN where there are too few requests
 */
export const intervalsOf = (
  values: ReadonlyArray<number>,
  statistics: ReadonlyArray<Statistic>,
): ReadonlyArray<Interval> => {
  const count = values.length
  if (count === 0) return statistics.map(() => ({ value: Number.NaN, low: Number.NaN, high: Number.NaN }))
  const sorted = Float64Array.from(values).sort()
  const valueOf = (statistic: Statistic): number =>
    statistic === "mean" ? meanOf(sorted) : sorted[rankOf(statistic, count)]!
  // The order of a resample is not needed, only how often each rank was drawn.
  const order = Array.from(values.keys()).sort((a, b) => values[a]! - values[b]!)
  const rankAt = new Uint32Array(count)
  for (const [rank, at] of order.entries()) rankAt[at] = rank
  const block = Math.max(1, Math.ceil(Math.cbrt(count)))
  const resamples = Math.max(leastResamples, Math.min(mostResamples, Math.floor(mostDraws / count)))
  const found = statistics.map(() => new Float64Array(resamples))
  const drawn = new Uint32Array(count)
  for (let nth = 0; nth < resamples; nth++) {
    drawn.fill(0)
    const random = new Random(1, nth)
    for (let taken = 0; taken < count; ) {
      const from = random.below(count)
      for (let i = 0; i < block && taken < count; i++, taken++) drawn[rankAt[(from + i) % count]!]!++
    }
    for (const [which, statistic] of statistics.entries()) {
      found[which]![nth] = statisticOf(sorted, drawn, statistic)
    }
  }
  return statistics.map((statistic, which) => {
    if (!hasEnough(statistic, count)) return { value: valueOf(statistic), low: Number.NaN, high: Number.NaN }
    const all = found[which]!.sort()
    const tail = (1 - intervalShare) / 2
    return {
      value: valueOf(statistic),
      low: all[Math.floor(tail * (resamples - 1))]!,
      high: all[Math.ceil((1 - tail) * (resamples - 1))]!,
    }
  })
}

/** The statistic of a resample, given how often each value was drawn. */
const statisticOf = (sorted: Float64Array, drawn: Uint32Array, statistic: Statistic): number => {
  const count = sorted.length
  if (statistic === "mean") {
    let sum = 0
    for (let i = 0; i < count; i++) sum += sorted[i]! * drawn[i]!
    return sum / count
  }
  const wanted = rankOf(statistic, count)
  let passed = 0
  for (let i = 0; i < count; i++) {
    passed += drawn[i]!
    if (passed > wanted) return sorted[i]!
  }
  return sorted[count - 1]!
}
