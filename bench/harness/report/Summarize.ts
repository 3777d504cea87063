// Collects the outcomes of one point of a load as they come, in bounded memory, and makes its result.
import type { Outcome } from "../client/Outcome.ts"
import { type Interval, intervalsOf, type Statistic } from "../figures/Bootstrap.ts"
import { type FigureName, factsOf } from "../figures/Figures.ts"
import { Latencies } from "../figures/Latencies.ts"
import type { Driven, Load, Sent } from "../load/Drive.ts"
import { broken, holds, type Judged, type Measure, type Objective } from "../load/Objective.ts"
import type { FigureResult, KindResult, PointResult, TimelinePoint } from "./Result.ts"
import { Throughput } from "./Throughput.ts"

const statistics: ReadonlyArray<Statistic> = ["mean", 50, 90, 95, 99]
const longestTimeline = 2_000

/** A failed or finished request, without the values that were added to histograms. */
interface Kept extends Judged {
  readonly scheduledMs: number
  readonly failure?: string
}

class KindCollector {
  readonly pooled = new Map<FigureName, Latencies>()
  wrongWords = 0
  words = 0

  add({ pooled = {}, words }: NonNullable<Outcome["measured"]>): void {
    for (const [name, values] of Object.entries(pooled) as ReadonlyArray<
      [FigureName, ReadonlyArray<number>]
    >) {
      if (values.length === 0) continue
      const histogram = this.pooled.get(name) ?? new Latencies()
      this.pooled.set(name, histogram)
      for (const value of values) histogram.record(value)
    }
    if (words !== undefined) {
      this.wrongWords += words.wrong
      this.words += words.words
    }
  }
}

const exactly = (value: number): Interval => ({ value, low: Number.NaN, high: Number.NaN })

/** Without intervals, because the gaps of one reply are not independent. */
const pooledResult = (histogram: Latencies): FigureResult => ({
  count: histogram.count,
  mean: exactly(histogram.mean),
  p50: exactly(histogram.at(50)),
  p90: exactly(histogram.at(90)),
  p95: exactly(histogram.at(95)),
  p99: exactly(histogram.at(99)),
  max: histogram.max,
  histogram: histogram.encoded,
})

const figureResult = (values: ReadonlyArray<number>): FigureResult => {
  const [mean, p50, p90, p95, p99] = intervalsOf(values, statistics) as [
    Interval,
    Interval,
    Interval,
    Interval,
    Interval,
  ]
  const histogram = new Latencies()
  for (const value of values) histogram.record(value)
  const max = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY)
  return { count: values.length, mean, p50, p90, p95, p99, max, histogram: histogram.encoded }
}

export class PointCollector {
  readonly #kept: Array<Kept> = []
  readonly #kinds = new Map<string, KindCollector>()
  readonly #errors = new Map<string, number>()
  readonly #examples = new Map<string, string>()

  readonly #objective: Objective | undefined
  readonly #throughput: Throughput

  /** @param durationMs the measured time after the warm-up */
  constructor(objective: Objective | undefined, durationMs: number) {
    this.#objective = objective
    this.#throughput = new Throughput(durationMs)
  }

  /** Takes every request; those of the warm-up count for the throughput only. */
  add({ counted, endMs, outcome, scheduledMs }: Sent<Outcome>): void {
    const { failure, kind, measured } = outcome
    const judged = { kind, failed: failure !== undefined, figures: measured?.figures ?? {} }
    this.#throughput.add(outcome, { endMs, counted, good: holds(this.#objective, judged) })
    if (!counted) return
    this.#kept.push({
      ...judged,
      scheduledMs,
      ...(failure === undefined ? {} : { failure: failure.key }),
    })
    const collector = this.#kinds.get(kind) ?? new KindCollector()
    this.#kinds.set(kind, collector)
    if (measured !== undefined) collector.add(measured)
    if (failure !== undefined) this.#count(failure.key, failure.detail)
  }

  #count(key: string, detail: string, times = 1): void {
    this.#errors.set(key, (this.#errors.get(key) ?? 0) + times)
    if (!this.#examples.has(key)) this.#examples.set(key, detail)
  }

  result(load: Load, driven: Driven): PointResult {
    const objective = this.#objective
    const { client, elapsedMs, mostInFlight, neverSent, warmupRequests } = driven
    if (neverSent > 0) this.#count("never sent", "too many were in flight until the run ended", neverSent)
    const kept = this.#kept.toSorted((a, b) => a.scheduledMs - b.scheduledMs)
    const requests = kept.length + neverSent
    const failed = kept.filter((one) => one.failed).length + neverSent
    const good = [...kept.map((one) => (holds(objective, one) ? 1 : 0)), ...Array<number>(neverSent).fill(0)]
    const [share = exactly(Number.NaN)] = intervalsOf(good, ["mean"])
    const kinds = Object.fromEntries(
      [...this.#kinds].map(([kind, collector]) => [kind, kindResult(kind, kept, collector)]),
    )
    const rates = this.#throughput.perSecond(elapsedMs)
    const judged = {
      errors: requests === 0 ? 1 : failed / requests,
      kinds: Object.keys(kinds),
      measured: (kind: string, figure: FigureName, measure: Measure) =>
        measuredOf(kinds[kind]?.figures[figure], measure),
    }
    return {
      load:
        load.loop === "open"
          ? { loop: "open", rate_per_second: load.ratePerSecond }
          : { loop: "closed", clients: load.clients },
      measured_s: elapsedMs / 1000,
      requests,
      warmup_requests: warmupRequests,
      failed,
      errors: Object.fromEntries([...this.#errors].toSorted(([, a], [, b]) => b - a)),
      error_examples: Object.fromEntries(this.#examples),
      completed_per_second: rates.completed,
      ...(rates.tokens > 0 ? { output_tokens_per_second: rates.tokens } : {}),
      ...(rates.audio > 0 ? { audio_seconds_per_second: rates.audio } : {}),
      most_in_flight: mostInFlight,
      goodput: { share, per_second: rates.good },
      ...(objective === undefined ? {} : { broken: broken(objective, judged) }),
      kinds,
      client,
      timeline: timelineOf(kept),
    }
  }
}

const measuredOf = (figure: FigureResult | undefined, measure: Measure): number | undefined => {
  if (figure === undefined) return undefined
  if (measure === "max") return figure.max
  return measure === "mean" ? figure.mean.value : figure[`p${measure}`].value
}

const kindResult = (
  kind: string,
  all: ReadonlyArray<Kept>,
  { pooled, words, wrongWords }: KindCollector,
): KindResult => {
  const kept = all.filter((one) => one.kind === kind)
  const names = new Set(kept.flatMap((one) => Object.keys(one.figures) as Array<FigureName>))
  const single = [...names].map((name): [FigureName, FigureResult] => [
    name,
    figureResult(kept.flatMap((one) => one.figures[name] ?? [])),
  ])
  const many = [...pooled].map(([name, histogram]): [FigureName, FigureResult] => [
    name,
    pooledResult(histogram),
  ])
  return {
    requests: kept.length,
    failed: kept.filter((one) => one.failed).length,
    ...(words === 0 ? {} : { word_error_percent: (100 * wrongWords) / words }),
    figures: Object.fromEntries([...single, ...many].filter(([name]) => factsOf(name) !== undefined)),
  }
}

/** A first piece, by kind: of text, or an audible sample. */
const firstOf = ({ figures }: Kept): number | undefined =>
  figures.ttft ?? figures.first_sound ?? figures.commit_to_sound ?? figures.voice_to_voice

const timelineOf = (kept: ReadonlyArray<Kept>): ReadonlyArray<TimelinePoint> => {
  const step = Math.max(1, Math.ceil(kept.length / longestTimeline))
  return kept
    .filter((_, at) => at % step === 0)
    .map((one) => {
      const first = firstOf(one)
      return {
        at_s: one.scheduledMs / 1000,
        kind: one.kind,
        ...(first === undefined ? {} : { first_ms: first }),
        ...(one.figures.e2e === undefined ? {} : { e2e_ms: one.figures.e2e }),
        ...(one.failure === undefined ? {} : { failed: one.failure }),
      }
    })
}
