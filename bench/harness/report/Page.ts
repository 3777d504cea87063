// The report of a result as one HTML file: the tables of Report.ts, and of a load run plots. Pure.
import { type FigureName, figures } from "../figures/Figures.ts"
import { Latencies } from "../figures/Latencies.ts"
import type { Figure, Part } from "./Figure.ts"
import { factsList, htmlTable, page } from "./PageShell.ts"
import { drawPlot, escaped, type Series } from "./Plots.ts"
import { factLines, tableOf, titleOf } from "./Report.ts"
import { figureIn, type Result, type Section, type TimelinePoint } from "./Result.ts"
import { allRequests } from "./Summarize.ts"

/** Places of the percentile axis: each further one has a tenth of the requests beyond it. */
const percentileTicks = [50, 90, 99, 99.9, 99.99]

/** 1 / (1 - p), on a logarithmic axis, spreads the tail. */
const beyond = (percentile: number): number => 100 / (100 - percentile)

const curveOf = (readings: number, histogram: string): Series["points"] => {
  const latencies = Latencies.decoded(histogram)
  const finest = Math.min(beyond(99.99), Math.max(beyond(50), readings))
  const steps = 80
  return Array.from({ length: steps + 1 }, (_, i) => finest ** (i / steps)).map((place) => [
    place,
    latencies.at(100 - 100 / place),
  ])
}

const percentilePlot = (part: Part): string => {
  const series: ReadonlyArray<Series> = part.figures
    .flatMap(({ distribution, name, readings, unit }) =>
      distribution === undefined || unit !== "ms"
        ? []
        : [{ name, points: curveOf(readings, distribution.histogram) }],
    )
    .slice(0, 6)
    .map((one, at) => ({ ...one, colour: at + 1, form: "line" }))
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
const timelinePlot = ({ load }: Section): string => {
  const timeline = load?.timeline ?? []
  const dots = (value: (one: TimelinePoint) => number | undefined) =>
    timeline.flatMap((one): Series["points"] => {
      const at = value(one)
      return at === undefined ? [] : [[one.atSeconds, at]]
    })
  const failed = timeline.filter((one) => one.failed !== undefined)
  const most = timeline.reduce((high, one) => Math.max(high, one.endMs ?? 0), 1)
  const series: ReadonlyArray<Series> = [
    { name: "until the end", colour: 1, form: "dots" as const, points: dots((one) => one.endMs) },
    {
      name: "until the first piece or sound",
      colour: 2,
      form: "dots" as const,
      points: dots((one) => one.firstMs),
    },
    {
      name: "failed",
      colour: 5,
      form: "dots" as const,
      points: failed.map((one) => [one.atSeconds, most] as const),
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

const partHtml = (part: Part): string =>
  [
    `<h3>${escaped(part.title)}</h3>`,
    part.method === "" ? "" : `<p class="soft">${escaped(part.method)}</p>`,
    part.figures.length === 0 ? "" : htmlTable(tableOf(part.figures)),
    ...(part.notes ?? []).map((note) => `<p>${escaped(note)}</p>`),
    percentilePlot(part),
  ].join("")

const sectionHtml = (section: Section): string =>
  [
    `<h2>${escaped(section.name)}</h2>`,
    ...(section.cautions ?? []).map((caution) => `<p class="warn">${escaped(caution)}</p>`),
    ...section.parts.map(partHtml),
    timelinePlot(section),
  ].join("")

const sizeOf = ({ load }: Section): number =>
  load === undefined ? 0 : load.loop === "open" ? load.ratePerSecond : load.clients

/** The figure that a load is judged by first, of any kind of request. */
const firstFigure = ({ parts }: Section): Figure | undefined => {
  const all = parts.flatMap((part) => part.figures)
  return (["ttft", "first_sound", "commit_to_sound", "voice_to_voice", "final", "e2e"] as const)
    .map((name) => all.find((one) => one.name === name))
    .find((one) => one !== undefined)
}

/** Of several loads: the time that matters and goodput against the load. */
const loadPlots = ({ sections }: Result): string => {
  const ordered = sections.filter(({ load }) => load !== undefined).toSorted((a, b) => sizeOf(a) - sizeOf(b))
  if (ordered.length < 2) return ""
  const label = ordered[0]?.load?.loop === "open" ? "requests a second" : "clients"
  const found = ordered.flatMap((section) => {
    const figure = firstFigure(section)
    return figure?.distribution === undefined
      ? []
      : [
          {
            at: sizeOf(section),
            name: figure.name,
            p50: { ...figure, value: figure.median },
            p95: figure.distribution.p95,
          },
        ]
  })
  const rate = (name: string): Series["points"] =>
    ordered.flatMap((section) => {
      const value = figureIn(section, allRequests, name)?.median
      return value == null ? [] : [[sizeOf(section), value] as const]
    })
  const name = found[0]?.name
  return [
    name === undefined
      ? ""
      : drawPlot({
          title: `${name} by load`,
          x: { label, log: true },
          y: { label: "milliseconds", log: true },
          series: (["p50", "p95"] as const).map((measure, at) => ({
            name: measure,
            colour: at + 1,
            form: "line and dots",
            points: found.map((one) => [one.at, one[measure].value ?? Number.NaN]),
            bars: found.map((one) => [one[measure].low ?? Number.NaN, one[measure].high ?? Number.NaN]),
          })),
        }),
    drawPlot({
      title: "Goodput by load",
      x: { label, log: true },
      y: { label: "requests a second", from: 0 },
      series: [
        { name: "completed", colour: 6, form: "line and dots", points: rate("completed") },
        {
          name: "within the objective",
          colour: 3,
          form: "line and dots",
          points: rate("within the objective"),
        },
      ],
    }),
  ].join("")
}

const isKnown = (name: string): name is FigureName => Object.hasOwn(figures, name)

/** The meaning of the load figures that the result has. */
const meanings = ({ sections }: Result): ReadonlyArray<readonly [string, string]> => {
  const names = new Set(
    sections.flatMap(({ parts }) => parts.flatMap((part) => part.figures.map(({ name }) => name))),
  )
  return [...names].filter(isKnown).map((name) => [name, `${figures[name].label}. ${figures[name].meaning}`])
}

const flat = (value: unknown, prefix = ""): ReadonlyArray<readonly [string, string]> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([name, inner]) =>
        flat(inner, prefix === "" ? name : `${prefix}.${name}`),
      )
    : [[prefix, Array.isArray(value) ? value.join(", ") : String(value)]]

export const pageOf = (result: Result): string => {
  const { settings, target } = result
  const title = titleOf(result)
  return page(
    title,
    [
      `<h1>${escaped(title)}</h1>`,
      ...factLines(result).map((line) => `<p class="soft">${escaped(line)}</p>`),
      ...result.sections.map(sectionHtml),
      loadPlots(result),
      "<h2>How it was measured</h2>",
      factsList(meanings(result)),
      ...(target === undefined
        ? []
        : ["<h3>Server, as it says itself</h3>", factsList(flat(target.reported))]),
      "<h3>Settings</h3>",
      factsList(flat(settings)),
    ].join(""),
  )
}
