// Two results side by side as one HTML file: ratios as dots with their intervals, and all numbers as a table. Pure.
import {
  comparedParts,
  compareResults,
  comparisonNote,
  comparisonTable,
  differencesOf,
  type Ratio,
  sidesOf,
} from "./Compare.ts"
import { hasBounds } from "./Format.ts"
import { factsList, htmlTable, page } from "./PageShell.ts"
import { drawPlot, escaped } from "./Plots.ts"
import { titleOf } from "./Report.ts"
import type { Result } from "./Result.ts"

const ratioPlot = (part: string, ratios: ReadonlyArray<Ratio>): string => {
  const drawn = ratios.filter(({ ratio }) => hasBounds(ratio))
  if (drawn.length === 0) return ""
  return drawPlot({
    title: `B / A, ${part}, with intervals or ranges; 1 is no difference`,
    x: {
      label: "row of the table",
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

export const comparisonPageOf = (a: Result, b: Result): string => {
  const ratios = compareResults(a, b)
  return page(
    `${titleOf(a)} and ${titleOf(b)}`,
    [
      `<h1>Comparison: ${escaped(a.suite)}</h1>`,
      factsList(sidesOf(a, b)),
      ...differencesOf(a, b).map((one) => `<p class="warn">${escaped(one)}</p>`),
      ...[...comparedParts(ratios)].map(
        ([part, here]) =>
          `<h2>${escaped(part)}</h2>${ratioPlot(part, here)}${htmlTable(comparisonTable(here))}`,
      ),
      `<p class="soft">${escaped(comparisonNote)}</p>`,
    ].join(""),
  )
}
