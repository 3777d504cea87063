// Two results side by side as one HTML file: ratios as dots with their intervals, and all numbers as a table. Pure.
import { compareResults, differencesOf, type Ratio } from "./Compare.ts"
import { digits, hasInterval, shown } from "./Format.ts"
import { factsList, page, tableOf } from "./PageShell.ts"
import { drawPlot, escaped } from "./Plots.ts"
import type { Result } from "./Result.ts"

const nameOf = ({ figure, kind, measure }: Ratio): string =>
  `${kind === "all" ? "" : `${kind} `}${figure} ${measure}`

const ratioPlot = (load: string, ratios: ReadonlyArray<Ratio>): string => {
  const drawn = ratios.filter(({ ratio }) => hasInterval(ratio))
  if (drawn.length === 0) return ""
  return drawPlot({
    title: `B / A at ${load}, with 95 % intervals; 1 is no difference`,
    x: {
      label: "figure (numbers of the table)",
      from: 0,
      to: drawn.length + 1,
      ticks: drawn.map((one, at) => [at + 1, String(ratios.indexOf(one) + 1)]),
    },
    y: { label: "ratio", log: true },
    series: [
      {
        name: "no difference",
        colour: 6,
        form: "line",
        points: [
          [0, 1],
          [drawn.length + 1, 1],
        ],
      },
      {
        name: "B / A",
        colour: 1,
        form: "dots",
        points: drawn.map(({ ratio }, at) => [at + 1, ratio.value]),
        bars: drawn.map(({ ratio }) => [ratio.low, ratio.high]),
      },
    ],
  })
}

const row = (one: Ratio, at: number): ReadonlyArray<string> => [
  `${at + 1}. ${escaped(nameOf(one))}`,
  shown(one.a, one.unit),
  shown(one.b, one.unit),
  digits(one.ratio.value),
  hasInterval(one.ratio) ? `${digits(one.ratio.low)} – ${digits(one.ratio.high)}` : "",
  one.better === undefined ? "" : `${one.better} better`,
]

export const comparisonPageOf = (a: Result, b: Result): string => {
  const ratios = compareResults(a, b)
  const loads = [...new Set(ratios.map(({ load }) => load))]
  return page(
    `${a.target.url} and ${b.target.url}`,
    [
      `<h1>Comparison: ${escaped(a.suite)}</h1>`,
      factsList([
        ["A", `${a.target.url}, ${a.machine.startedAt}`],
        ["B", `${b.target.url}, ${b.machine.startedAt}`],
      ]),
      ...differencesOf(a, b).map((one) => `<p class="warn">${escaped(one)}</p>`),
      ...loads.map((load) => {
        const here = ratios.filter((one) => one.load === load)
        return `<h2>${escaped(load)}</h2>${ratioPlot(load, here)}${tableOf(["figure", "A", "B", "B / A", "95 % interval", ""], here.map(row))}`
      }),
      "<p class='soft'>Intervals by the normal approximation on the logarithmic scale. Of 20 comparisons without a difference one is expected to look like one.</p>",
    ].join(""),
  )
}
