// A histogram of durations with a precision of three digits (HdrHistogram), whose memory does not grow with the number of
// values: 100 KB. Histograms of several processes or points can be added up.
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram as Hdr,
} from "hdr-histogram-js"

export interface Percentiles {
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

const usPerMs = 1_000
/** Upper bound of the histogram: an hour, more than any request takes. */
const highestUs = 3_600_000 * usPerMs

export class Latencies {
  readonly #histogram: Hdr = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: highestUs,
    numberOfSignificantValueDigits: 3,
  })

  /** Values below a microsecond count as one, those above an hour as an hour. NaN is ignored. */
  record(durationMs: number): void {
    if (Number.isNaN(durationMs)) return
    this.#histogram.recordValue(Math.max(1, Math.min(highestUs, Math.round(durationMs * usPerMs))))
  }

  reset(): void {
    this.#histogram.reset()
  }

  /** Adds all values of the other histogram. */
  add(other: Latencies): void {
    this.#histogram.add(other.#histogram)
  }

  get count(): number {
    return this.#histogram.totalCount
  }

  /** Milliseconds; NaN if there are no values. */
  get mean(): number {
    return this.count === 0 ? Number.NaN : this.#histogram.mean / usPerMs
  }

  /** Milliseconds; 0 if there are no values. */
  at(percentile: number): number {
    return this.count === 0 ? 0 : this.#histogram.getValueAtPercentile(percentile) / usPerMs
  }

  get max(): number {
    return this.count === 0 ? 0 : this.#histogram.maxValue / usPerMs
  }

  /** Milliseconds. */
  get percentiles(): Percentiles {
    return { count: this.count, p50: this.at(50), p95: this.at(95), p99: this.at(99), max: this.max }
  }

  /** HdrHistogram's compressed form (V2) in base64, in microseconds; its tools for other languages read it too. */
  get encoded(): string {
    return encodeIntoCompressedBase64(this.#histogram)
  }

  /** @throws if the text is not a histogram */
  static decoded(text: string): Latencies {
    const latencies = new Latencies()
    latencies.#histogram.add(decodeFromCompressedBase64(text))
    return latencies
  }
}
