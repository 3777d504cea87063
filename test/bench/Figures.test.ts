// Figures in the docs and in model cards are those of bench/results, and others say that they have no file.
import { expect, it } from "vitest"
import { figure, named } from "#harness/report/Figure.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { unmarked, withFigures } from "../../bench/pages/Blocks.ts"
import { pages } from "../../bench/pages/Pages.ts"
import { fileNameOf, keptResults, type SuiteResult } from "../../bench/run/ResultFile.ts"

const part = named({
  title: "Added",
  method: "by turns",
  figures: [
    figure("gateway", "ms", [0.2, 0.1, 0.3]),
    figure("  over raw", "x", [1.2, 1.4, 1.25], { is: "at most", value: 1.3 }),
    figure("engine", "us", [Number.NaN]),
  ],
})

const result: SuiteResult = {
  form: "edgewise-result",
  version: 1,
  suite: "text",
  revision: "0123456789ab",
  machine: describeMachine(new Date("2026-01-02T03:04:05Z")),
  settings: { quick: false },
  elapsedSeconds: 61,
  sections: [{ name: "latency", parts: [part] }],
}
const results = new Map<string, SuiteResult>([["text.latency.json", result]])
const place = "# a\n\n<!-- figures: text.latency.json -->\nold\n<!-- end of figures -->\n\n## b\n"

it("every page has the figures of bench/results, and its other figures say that they have no file", () => {
  const all = pages()
  expect(all.length).toBeGreaterThan(40)
  expect(all.flatMap(({ path, wrong }) => wrong.map((why) => `${path}: ${why}`))).toEqual([])
  expect(all.filter(({ text, written }) => text !== written).map(({ path }) => path)).toEqual([])
})

it("the results that are kept lie under the names of their runs, and name no folder of a machine", () => {
  const kept = [...keptResults()]
  expect(kept.length).toBeGreaterThan(0)
  for (const [name, one] of kept) {
    expect(name).toBe(fileNameOf(one, one.sections[0]?.name ?? ""))
    expect([name, one.sections.length, one.settings.quick]).toEqual([name, 1, false])
    expect(JSON.stringify(one)).not.toMatch(/\/(home|root|tmp|work|Users)\//)
    for (const { figures } of one.sections.flatMap(({ parts }) => parts)) {
      expect([name, figures.length]).toEqual([name, new Set(figures.map((figure) => figure.name)).size])
    }
  }
})

it("what JSON cannot say is null", () => {
  expect(part.figures.map(({ median, met, name }) => [name, median, met])).toEqual([
    ["gateway", 0.2, undefined],
    ["gateway: over raw", 1.25, true],
    ["engine", null, undefined],
  ])
})

it("a block is written from its file, and written again is the same", () => {
  const page = withFigures(place, results)
  expect(page).toContain("| gateway: over raw | 1.25 | x | 1.2 to 1.4 | 3 | at most 1.3: met |")
  expect(page).toContain("`npm run -s bench -- text --section latency`")
  expect(page).toContain("2026-01-02T03:04:05.000Z")
  expect(page).toContain("revision 0123456789ab")
  expect(page).not.toContain("old")
  expect(withFigures(page, results)).toBe(page)
  expect(withFigures(page.replace("| 1.25 |", "| 1.15 |"), results)).toBe(page)
})

it("a block says what ran beside, and that its run did not come to its end", () => {
  const neighbours = { processes: 2, nice: 10, cores: 1.2 }
  const partial = { ...result, neighbours, failure: "interrupted" }
  const page = withFigures(place, new Map([["text.latency.json", partial]]))
  expect(page).toContain("--section latency --beside 2 --beside-nice 10`")
  expect(page).toContain("beside 2 busy processes at nice 10, which used 1.2 cores")
  expect(page).toContain("PARTIAL: interrupted")
  const pulsing = { ...partial, neighbours: { ...neighbours, pulseMs: 5_000 } }
  const other = withFigures(place, new Map([["text.latency.json", pulsing]]))
  expect(other).toContain("--beside 2 --beside-nice 10 --beside-pulse-ms 5000`")
  expect(other).toContain(
    "beside 2 busy processes that computed for 5000 ms and rested for as long at nice 10",
  )
})

it("a block may show some figures only; a file or a figure that is not there is an error", () => {
  const only = (names: string) => place.replace(".json", `.json; only: ${names}`)
  expect(withFigures(only("engine"), results)).not.toContain("gateway")
  expect(() => withFigures(only("gateway; motor"), results)).toThrow('has no figure "motor"')
  expect(() => withFigures(place, new Map())).toThrow("there is no file bench/results/text.latency.json")
  expect(() => withFigures(place.replace("<!-- end", "<!-- and"), results)).toThrow("no end")
})

it("a dated figure outside of a block says that it has no file", () => {
  expect(unmarked("It took 5 ms on 2026-01-02, one run.\n\nAnother.")).toHaveLength(1)
  expect(unmarked("It took 5 ms on 2026-01-02 (by hand, no file), one run.")).toEqual([])
  expect(unmarked('    {"timestamp":"2026-01-02"}\n\nSee `2026-01-02`.')).toEqual([])
  expect(unmarked(withFigures(place, results))).toEqual([])
})
