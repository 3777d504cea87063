// The report of a run as one HTML file. Pure.
import { type FigureName, factsOf } from "../figures/Figures.ts"
import { Latencies } from "../figures/Latencies.ts"
import { digits, hasInterval, loadName, shown } from "./Format.ts"
import { factsList, page, tableOf } from "./PageShell.ts"
import { drawPlot, escaped, type Series } from "./Plots.ts"
import type { FigureResult, KindResult, PointResult, Result, TimelinePoint } from "./Result.ts"

type Figures = ReadonlyArray<readonly [FigureName, FigureResult]>

const figuresOf = ({ figures }: KindResult): Figures => Object.entries(figures) as unknown as Figures

const cell = (figure: FigureResult, measure: "mean" | "p50" | "p95" | "p99", name: FigureName): string => {
  const { unit } = factsOf(name)
  const interval = figure[measure]
  const bounds = hasInterval(interval)
    ? `<small>${shown(interval.low, unit)} – ${shown(interval.high, unit)}</small>`
    : ""
  return `${shown(interval.value, unit)}${bounds}`
}

const figureTable = (kind: KindResult): string =>
  tableOf(
    ["figure", "mean", "p50", "p95", "p99", "max"],
    figuresOf(kind).map(([name, figure]) => [
      `<span title="${escaped(factsOf(name).meaning)}">${escaped(factsOf(name).label)}</span>`,
      cell(figure, "mean", name),
      cell(figure, "p50", name),
      cell(figure, "p95", name),
      cell(figure, "p99", name),
      shown(figure.max, factsOf(name).unit),
    ]),
  )

const card = (value: string, label: string): string =>
  `<div><b>${escaped(value)}</b><span>${escaped(label)}</span></div>`

const cards = (point: PointResult): string =>
  `<div class="cards">${[
    card(`${digits(point.completed_per_second)}/s`, "requests completed"),
    card(`${digits(100 * point.goodput.share.value)} %`, `goodput (${digits(point.goodput.per_second)}/s)`),
    card(String(point.failed), `of ${point.requests} failed`),
    ...(point.output_tokens_per_second === undefined
      ? []
      : [card(`${digits(point.output_tokens_per_second)}/s`, "output tokens")]),
    ...(point.audio_seconds_per_second === undefined
      ? []
      : [card(`${digits(point.audio_seconds_per_second)} s/s`, "audio")]),
    card(`${digits(point.client.client_lag_p99_ms)} ms`, "delay of the client (p99)"),
  ].join("")}</div>`

/** Places of the percentile axis: each further one has a tenth of the requests beyond it. */
const percentileTicks = [50, 90, 99, 99.9, 99.99]

/** 1 / (1 - p), on a logarithmic axis, spreads the tail. */
const beyond = (percentile: number): number => 100 / (100 - percentile)

const distributionOf = (figure: FigureResult): ReadonlyArray<readonly [number, number]> => {
  const histogram = Latencies.decoded(figure.histogram)
  const finest = Math.min(beyond(99.99), Math.max(beyond(50), figure.count))
  const steps = 80
  return Array.from({ length: steps + 1 }, (_, i) => finest ** (i / steps)).map((place) => [
    place,
    histogram.at(100 - 100 / place),
  ])
}

const times = (kind: KindResult): Figures => figuresOf(kind).filter(([name]) => factsOf(name).unit === "ms")

const distribution = (kind: KindResult): string => {
  const series: ReadonlyArray<Series> = times(kind)
    .slice(0, 6)
    .map(([name, figure], at) => ({
      name: factsOf(name).label,
      colour: at + 1,
      form: "line",
      points: distributionOf(figure),
    }))
  if (series.length === 0) return ""
  return drawPlot({
    title: "Times by percentile",
    x: {
      label: "percentile",
      log: true,
      ticks: percentileTicks
        .map((each) => [beyond(each), String(each)])
        .filter(
          ([at]) => Number(at) <= Math.max(...series.flatMap(({ points }) => points.map(([place]) => place))),
        ) as never,
    },
    y: { label: "milliseconds", log: true },
    series,
  })
}

/** Seconds of the run against the times of its requests: a stall is a slope. */
const timeline = (point: PointResult): string => {
  const dots = (value: (one: TimelinePoint) => number | undefined) =>
    point.timeline.flatMap((one): ReadonlyArray<readonly [number, number]> => {
      const at = value(one)
      return at === undefined ? [] : [[one.at_s, at]]
    })
  const failed = point.timeline.filter((one) => one.failed !== undefined)
  const most = point.timeline.reduce((high, one) => Math.max(high, one.e2e_ms ?? 0), 1)
  const series: ReadonlyArray<Series> = [
    { name: "until the end", colour: 1, form: "dots" as const, points: dots((one) => one.e2e_ms) },
    {
      name: "until the first piece or sound",
      colour: 2,
      form: "dots" as const,
      points: dots((one) => one.first_ms),
    },
    {
      name: "failed",
      colour: 5,
      form: "dots" as const,
      points: failed.map((one) => [one.at_s, most] as const),
    },
  ].filter(({ points }) => points.length > 0)
  if (series.length === 0) return ""
  return drawPlot({
    title: "Requests by the moment at which they were due",
    x: { label: "seconds from the start", from: 0 },
    y: { label: "milliseconds", from: 0 },
    series,
  })
}

const errorTable = (point: PointResult): string =>
  Object.keys(point.errors).length === 0
    ? ""
    : `<h3>Failures</h3>${tableOf(
        ["cause", "requests", "example"],
        Object.entries(point.errors).map(([key, count]) => [
          escaped(key),
          String(count),
          escaped(point.error_examples[key] ?? ""),
        ]),
      )}`

const pointSection = (point: PointResult): string => {
  const many = Object.keys(point.kinds).length > 1
  return [
    `<h2>${escaped(loadName(point.load))}</h2>`,
    `<p class="soft">${point.requests} requests in ${digits(point.measured_s)} s after ${point.warmup_requests} of warm-up; at most ${point.most_in_flight} at a time.</p>`,
    ...(point.client.bottleneck === undefined
      ? []
      : [`<p class="warn">The client limited this result: ${escaped(point.client.bottleneck)}.</p>`]),
    ...(point.broken ?? []).map((what) => `<p class="warn">Objective not held: ${escaped(what)}.</p>`),
    cards(point),
    ...Object.entries(point.kinds).map(
      ([name, kind]) =>
        `${many ? `<h3>${escaped(name)}: ${kind.requests} requests, ${kind.failed} failed</h3>` : ""}${figureTable(kind)}${
          kind.word_error_percent === undefined
            ? ""
            : `<p>Word errors over all words: ${digits(kind.word_error_percent)} %</p>`
        }${distribution(kind)}`,
    ),
    timeline(point),
    errorTable(point),
  ].join("")
}

const firstFigure = (point: PointResult): readonly [FigureName, FigureResult] | undefined => {
  const all = Object.values(point.kinds).flatMap(figuresOf)
  return (["ttft", "first_sound", "commit_to_sound", "voice_to_voice", "final", "e2e"] as const)
    .map((name) => all.find(([each]) => each === name))
    .find((one) => one !== undefined)
}

const loadOf = ({ load }: PointResult): number => (load.loop === "open" ? load.rate_per_second : load.clients)

/** Points of a ramp: the time that matters and goodput against the load. */
const rampSection = ({ knee, points }: Result): string => {
  if (knee === undefined) return ""
  const ordered = points.toSorted((a, b) => loadOf(a) - loadOf(b))
  const found = ordered.flatMap((point) => {
    const figure = firstFigure(point)
    return figure === undefined ? [] : [{ point, name: figure[0], figure: figure[1] }]
  })
  const sentence =
    knee.held === null
      ? "No load held the objective."
      : `${digits(knee.held)} ${knee.unit} held the objective${knee.broke === null ? "; no higher load was tried" : `, ${digits(knee.broke)} did not`}.`
  const name = found[0]?.name
  return [
    `<h2>The knee</h2><p><b>${escaped(sentence)}</b></p>`,
    name === undefined
      ? ""
      : drawPlot({
          title: `${factsOf(name).label} by load`,
          x: { label: knee.unit, log: true },
          y: { label: "milliseconds", log: true },
          series: (["p50", "p95"] as const).map((measure, at) => ({
            name: measure,
            colour: at + 1,
            form: "line and dots",
            points: found.map(({ figure, point }) => [loadOf(point), figure[measure].value]),
            bars: found.map(({ figure }) => [figure[measure].low, figure[measure].high]),
          })),
        }),
    drawPlot({
      title: "Goodput by load",
      x: { label: knee.unit, log: true },
      y: { label: "requests a second", from: 0 },
      series: [
        {
          name: "completed",
          colour: 6,
          form: "line and dots",
          points: ordered.map((point) => [loadOf(point), point.completed_per_second]),
        },
        {
          name: "within the objective",
          colour: 3,
          form: "line and dots",
          points: ordered.map((point) => [loadOf(point), point.goodput.per_second]),
        },
      ],
    }),
  ].join("")
}

const transcriptSection = ({ transcripts }: Result): string => {
  if (transcripts === undefined) return ""
  const { compared, differences, equal, failure } = transcripts
  return [
    `<h2>Transcripts</h2><p>${equal} of ${compared} turns have the transcript of a file with the same audio.</p>`,
    ...(failure === undefined
      ? []
      : [`<p class="warn">The comparison ended early: ${escaped(failure)}.</p>`]),
    differences.length === 0
      ? ""
      : tableOf(
          ["in the conversation", "of the file"],
          differences.map(({ conversation, file }) => [escaped(conversation), escaped(file)]),
        ),
  ].join("")
}

const flat = (value: unknown, prefix = ""): ReadonlyArray<readonly [string, string]> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([name, inner]) =>
        flat(inner, prefix === "" ? name : `${prefix}.${name}`),
      )
    : [[prefix, Array.isArray(value) ? value.join(", ") : String(value)]]

export const pageOf = (result: Result): string => {
  const { machine, settings, suite, target, tool } = result
  const meanings = new Map(
    result.points.flatMap(({ kinds }) =>
      Object.values(kinds).flatMap((kind) =>
        figuresOf(kind).map(([name]) => [factsOf(name).label, factsOf(name).meaning] as const),
      ),
    ),
  )
  return page(
    `${suite} on ${target.url}`,
    [
      `<h1>${escaped(suite)} on ${escaped(target.url)}</h1>`,
      `<p class="soft">${escaped(machine.startedAt)} · edgewise bench ${escaped(tool.version)} (${escaped(tool.commit)})</p>`,
      rampSection(result),
      ...result.points.map(pointSection),
      transcriptSection(result),
      "<h2>How it was measured</h2>",
      "<p>Times begin when a request was due (open loop) or sent (closed loop). Small numbers below a figure are its 95 % interval.</p>",
      factsList([...meanings]),
      "<h3>Server, as it says itself</h3>",
      factsList(flat(target.reported)),
      "<h3>Settings</h3>",
      factsList(flat(settings)),
      "<h3>Machine of the client</h3>",
      factsList(flat(machine)),
    ].join(""),
  )
}
