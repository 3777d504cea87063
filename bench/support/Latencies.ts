// A histogram of durations in whole microseconds, and the four numbers that a bench prints of it.
import { build } from "hdr-histogram-js"

export interface Percentiles {
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

const usPerMs = 1_000
/** Upper bound of the histogram: a minute, more than anything in a bench takes. */
const highestUs = 60_000 * usPerMs

export class Latencies {
  readonly #histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: highestUs,
    numberOfSignificantValueDigits: 3,
  })

  record(durationMs: number): void {
    this.#histogram.recordValue(Math.max(1, Math.min(highestUs, Math.round(durationMs * usPerMs))))
  }

  reset(): void {
    this.#histogram.reset()
  }

  /** Milliseconds. */
  get percentiles(): Percentiles {
    const histogram = this.#histogram
    const at = (percentile: number) => histogram.getValueAtPercentile(percentile) / usPerMs
    const count = histogram.totalCount
    return {
      count,
      p50: at(50),
      p95: at(95),
      p99: at(99),
      max: count === 0 ? 0 : histogram.maxValue / usPerMs,
    }
  }
}
