// Collects the outcomes of one point of a load as they come, in bounded memory, and makes its section of the result.
import type { Outcome } from "../client/Outcome.ts"
import { type Interval, intervalsOf, type Statistic } from "../figures/Bootstrap.ts"
import { type FigureName, factsOf } from "../figures/Figures.ts"
import { Latencies } from "../figures/Latencies.ts"
import type { ClientCost } from "../load/ClientLag.ts"
import type { Driven, Load, Sent } from "../load/Drive.ts"
import { broken, holds, type Judged, type Measure, type Objective } from "../load/Objective.ts"
import { type Figure, ofRequests, type Part, single } from "./Figure.ts"
import { digits, loadName } from "./Format.ts"
import type { Section, TimelinePoint } from "./Result.ts"
import { Throughput } from "./Throughput.ts"

const statistics: ReadonlyArray<Statistic> = ["mean", 50, 90, 95, 99]
const longestTimeline = 2_000

/** The parts of a load's section beside those of the kinds of requests. */
export const allRequests = "all requests"
export const clientPart = "the client"

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
const pooledFigure = (name: FigureName, histogram: Latencies): Figure =>
  ofRequests(name, factsOf(name), histogram.count, exactly(histogram.at(50)), {
    mean: exactly(histogram.mean),
    p90: exactly(histogram.at(90)),
    p95: exactly(histogram.at(95)),
    p99: exactly(histogram.at(99)),
    max: histogram.max,
    histogram: histogram.encoded,
  })

const figureOfEach = (name: FigureName, values: ReadonlyArray<number>): Figure => {
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
  const rest = { mean, p90, p95, p99, max, histogram: histogram.encoded }
  return ofRequests(name, factsOf(name), values.length, p50, rest)
}

export interface PointResult {
  readonly section: Section
  /** Whether it held the objective; true without one. */
  readonly held: boolean
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
    const kinds = [...this.#kinds].map(([kind, collector]) => kindPart(kind, kept, collector))
    const rates = this.#throughput.perSecond(elapsedMs)
    const judged = {
      errors: requests === 0 ? 1 : failed / requests,
      kinds: kinds.map(({ title }) => title),
      measured: (kind: string, figure: FigureName, measure: Measure) =>
        measuredOf(
          kinds.find(({ title }) => title === kind)?.figures.find(({ name }) => name === figure),
          measure,
        ),
    }
    const failures = [...this.#errors].toSorted(([, a], [, b]) => b - a)
    const notHeld = objective === undefined ? [] : broken(objective, judged)
    const all: Part = {
      title: allRequests,
      method: `in ${digits(elapsedMs / 1000)} s after ${warmupRequests} requests of warm-up; rates count what was completed in that time`,
      figures: [
        single("requests", "", requests),
        single("failed", "", failed, "less"),
        ...failures.map(([key, count]) => single(`failed: ${key}`, "", count, "less")),
        single("completed", "1/s", rates.completed, "more"),
        ...(rates.tokens > 0 ? [single("output tokens", "1/s", rates.tokens, "more")] : []),
        ...(rates.audio > 0 ? [single("audio", "s/s", rates.audio, "more")] : []),
        ofRequests("goodput", { unit: "share", moreIsBetter: true }, good.length, share),
        single("within the objective", "1/s", rates.good, "more"),
        single("most in flight", "", mostInFlight),
      ],
      notes: [
        ...failures.map(([key, count]) => `${count} failed (${key}): ${this.#examples.get(key) ?? ""}`),
        ...notHeld.map((what) => `objective not held: ${what}`),
      ],
    }
    return {
      held: notHeld.length === 0,
      section: {
        name: loadName(load),
        ...(client.bottleneck === undefined
          ? {}
          : { cautions: [`the client limited this result: ${client.bottleneck}`] }),
        parts: [all, ...kinds, costPart(client)],
        load: { ...load, timeline: timelineOf(kept) },
      },
    }
  }
}

const measuredOf = (figure: Figure | undefined, measure: Measure): number | undefined => {
  if (figure?.distribution === undefined) return undefined
  const { distribution, median } = figure
  if (measure === "max") return distribution.max ?? undefined
  if (measure === "mean") return distribution.mean.value ?? undefined
  return (measure === 50 ? median : distribution[`p${measure}`].value) ?? undefined
}

const kindPart = (
  kind: string,
  all: ReadonlyArray<Kept>,
  { pooled, words, wrongWords }: KindCollector,
): Part => {
  const kept = all.filter((one) => one.kind === kind)
  const names = new Set(kept.flatMap((one) => Object.keys(one.figures) as Array<FigureName>))
  return {
    title: kind,
    method: `${kept.length} requests, of which ${kept.filter((one) => one.failed).length} failed; a value for each of the others, or for all their pieces`,
    figures: [
      ...[...names]
        .filter((name) => factsOf(name) !== undefined)
        .map((name) =>
          figureOfEach(
            name,
            kept.flatMap((one) => one.figures[name] ?? []),
          ),
        ),
      ...[...pooled].map(([name, histogram]) => pooledFigure(name, histogram)),
      ...(words === 0 ? [] : [single("word errors over all words", "share", wrongWords / words, "less")]),
    ],
  }
}

const costPart = (client: ClientCost): Part => ({
  title: clientPart,
  method: "the delay of its event loop, how late requests were sent, and its processor time",
  figures: [
    single("event loop late, p99", "ms", client.lagP99Ms),
    single("event loop late, longest", "ms", client.lagMaxMs),
    single("sent late, p99", "ms", client.sendLateP99Ms),
    single("processor time of a request", "ms", client.cpuMsPerRequest),
    single("of a core", "share", client.coreShare),
  ],
})

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
        atSeconds: one.scheduledMs / 1000,
        kind: one.kind,
        ...(first === undefined ? {} : { firstMs: first }),
        ...(one.figures.e2e === undefined ? {} : { endMs: one.figures.e2e }),
        ...(one.failure === undefined ? {} : { failed: one.failure }),
      }
    })
}
