// Results, their comparison and their pages.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Outcome } from "#harness/client/Outcome.ts"
import { Latencies } from "#harness/figures/Latencies.ts"
import type { Driven } from "#harness/load/Drive.ts"
import { parseObjective } from "#harness/load/Objective.ts"
import { Random } from "#harness/random/Random.ts"
import { compareResults, differencesOf, ratioOf } from "#harness/report/Compare.ts"
import { comparisonPageOf } from "#harness/report/ComparisonPage.ts"
import { figure } from "#harness/report/Figure.ts"
import { digits, shown } from "#harness/report/Format.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { pageOf } from "#harness/report/Page.ts"
import { drawPlot } from "#harness/report/Plots.ts"
import { reportText } from "#harness/report/Report.ts"
import { type Result, readResult, resultText, WrongResult } from "#harness/report/Result.ts"
import { allRequests, clientPart, PointCollector } from "#harness/report/Summarize.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { figuresIn } from "./SectionFigures.ts"

const client = { lagP99Ms: 1, lagMaxMs: 2, sendLateP99Ms: 1, cpuMsPerRequest: 1, coreShare: 0.1 }
const driven: Driven = { elapsedMs: 10_000, warmupRequests: 3, mostInFlight: 4, neverSent: 0, client }

/** Requests whose first token takes about `ttftMs`; every tenth fails. */
const pointOf = (ttftMs: number, seed: number, objective = parseObjective("ttft<1s")) => {
  const collector = new PointCollector(objective, 10_000)
  const random = new Random(seed, 0)
  for (let index = 0; index < 400; index++) {
    const outcome: Outcome =
      index % 10 === 9
        ? { kind: "text", failure: { key: "503", detail: "<b>busy</b>" } }
        : {
            kind: "text",
            measured: {
              figures: {
                ttft: ttftMs * (0.8 + (0.4 * random.below(1_000)) / 1_000),
                tokens: 10,
                e2e: 2 * ttftMs,
              },
              pooled: { itl: [1, 2, 3] },
              words: { wrong: 1, words: 20 },
            },
          }
    collector.add({ index, scheduledMs: index * 25, endMs: index * 25, counted: true, outcome })
  }
  return collector.result({ loop: "open", ratePerSecond: 40 }, driven)
}

const resultOf = (ttftMs: number, seed: number, rest: Partial<Result> = {}): Result => ({
  form: "edgewise-result",
  version: 1,
  suite: "text",
  revision: "c",
  machine: describeMachine(new Date(0)),
  target: { url: "http://a", reported: { models: ["<script>alert(1)</script>"] } },
  settings: { seed },
  sections: [pointOf(ttftMs, seed).section],
  ...rest,
})

/** As it is read from a file. */
const stored = (result: Result): Result => readResult(resultText(result), "a.json")

describe("a point", () => {
  it("counts failures, goodput, rates and words", () => {
    const { held, section } = pointOf(100, 1)
    const all = figuresIn(section, allRequests)
    expect(held).toBe(false)
    expect(section.parts.map(({ title }) => title)).toEqual([allRequests, "text", clientPart])
    const counts = ["requests", "failed", "failed: 503", "completed", "output tokens", "goodput"]
    expect(counts.map((name) => all[name]?.median)).toEqual([400, 40, 40, 36, 360, 0.9])
    expect(section.parts[0]?.notes).toEqual([
      "40 failed (503): <b>busy</b>",
      "objective not held: 10.0 % of the requests failed",
    ])
    const text = figuresIn(section, "text")
    expect(text["word errors over all words"]?.median).toBe(0.05)
    expect(text.itl).toMatchObject({ readings: 3 * 360, median: 2 })
    expect(Latencies.decoded(text.ttft!.histogram).count).toBe(360)
  })

  it("counts for the throughput what ended in the measured time, whenever it began", () => {
    const collector = new PointCollector(parseObjective("e2e<1s"), 10_000)
    const add = (scheduledMs: number, endMs: number) =>
      collector.add({
        index: 0,
        scheduledMs,
        endMs,
        counted: scheduledMs >= 0,
        outcome: { kind: "text", measured: { figures: { e2e: endMs - scheduledMs, tokens: 50 } } },
      })
    add(-5_000, -1)
    add(-1_000, 4_000)
    add(4_000, 4_900)
    add(6_000, 9_000)
    add(9_000, 14_000)
    const { section } = collector.result({ loop: "closed", clients: 1 }, { ...driven, elapsedMs: 14_000 })
    const all = figuresIn(section, allRequests)
    const names = ["requests", "completed", "output tokens", "within the objective"]
    expect(names.map((name) => all[name]?.median)).toEqual([3, 0.3, 15, 0.1])
  })

  it("takes requests longer than the measured time from those that began in it", () => {
    const collector = new PointCollector(undefined, 1_000)
    const outcome: Outcome = { kind: "live", measured: { figures: { audio: 4 } } }
    collector.add({ index: 0, scheduledMs: 500, endMs: 5_000, counted: true, outcome })
    const { section } = collector.result({ loop: "closed", clients: 1 }, { ...driven, elapsedMs: 5_000 })
    const all = figuresIn(section, allRequests)
    expect([all.completed?.median, all.audio?.median]).toEqual([0.2, 0.8])
  })

  it("counts what was never sent as failed", () => {
    const { section } = new PointCollector(undefined, 10_000).result(
      { loop: "closed", clients: 1 },
      { ...driven, neverSent: 5 },
    )
    const all = figuresIn(section, allRequests)
    expect(["requests", "failed", "failed: never sent"].map((name) => all[name]?.median)).toEqual([5, 5, 5])
  })

  it("keeps at most 2,000 requests of the timeline", () => {
    const collector = new PointCollector(undefined, 10_000)
    for (let index = 0; index < 5_001; index++) {
      const outcome: Outcome = { kind: "text", measured: { figures: { e2e: 1 } } }
      collector.add({ index, scheduledMs: index, endMs: index, counted: true, outcome })
    }
    const { section } = collector.result({ loop: "closed", clients: 1 }, driven)
    expect(figuresIn(section, allRequests).requests?.median).toBe(5_001)
    expect(section.load?.timeline.length).toBeLessThanOrEqual(2_000)
  })
})

describe("a comparison", () => {
  it("finds what differs, and which is better", () => {
    const ratios = compareResults(stored(resultOf(100, 1)), stored(resultOf(200, 2)))
    const ttft = ratios.filter(({ figure }) => figure === "ttft")
    expect(ttft.map(({ measure }) => measure)).toEqual(["median", "mean", "p95", "p99"])
    for (const { better, ratio } of ttft.slice(0, 3)) {
      expect(ratio.value).toBeGreaterThan(1.8)
      expect(ratio.value).toBeLessThan(2.2)
      expect(better).toBe("A")
    }
  })

  it("takes equal servers for equal", inLong, () => {
    const trials = 20
    let differing = 0
    for (let seed = 0; seed < trials; seed++) {
      const ratios = compareResults(stored(resultOf(100, seed)), stored(resultOf(100, 1_000 + seed)))
      if (ratios.some(({ differs, figure, measure }) => figure === "ttft" && measure === "mean" && differs))
        differing++
    }
    expect(differing / trials).toBeLessThan(0.3)
  })

  it("of a ratio and its reverse are the same", () => {
    const interval = fc
      .tuple(fc.double({ min: 0.1, max: 1e4, noNaN: true }), fc.double({ min: 1.01, max: 3, noNaN: true }))
      .map(([value, width]) => ({ value, low: value / width, high: value * width }))
    fc.assert(
      fc.property(interval, interval, (a, b) => {
        const [there, back] = [ratioOf(a, b), ratioOf(b, a)]
        expect(there.value * back.value).toBeCloseTo(1, 9)
        expect(there.low * back.high).toBeCloseTo(1, 9)
        expect(there.low).toBeLessThan(there.value)
        expect(there.high).toBeGreaterThan(there.value)
      }),
    )
  })

  it("says why two results may not be comparable", () => {
    const a = resultOf(100, 1)
    expect(
      differencesOf(
        { ...a, settings: { seed: 1, text: { model: "a" } } },
        { ...a, settings: { seed: 2, text: { model: "b" } } },
      ),
    ).toEqual([])
    expect(differencesOf(a, { ...a, suite: "speech", settings: { maxTokens: 8 } })).toEqual([
      "the suites differ: text and speech",
      "the settings differ (load, requests or data)",
    ])
    expect(differencesOf(a, { ...a, sections: [] })).toContain("no section of the two has the same name")
    expect(differencesOf(a, { ...a, failure: "interrupted" })).toEqual(["B is partial: interrupted"])
  })
})

describe("repeated readings", () => {
  const of = (values: ReadonlyArray<number>): Result => ({
    ...resultOf(1, 1),
    sections: [
      {
        name: "s",
        parts: [
          { title: "p", method: "", figures: [figure("f", "ms", values, { is: "at most", value: 9 })] },
        ],
      },
    ],
  })
  const compared = (a: ReadonlyArray<number>, b: ReadonlyArray<number>) =>
    compareResults(stored(of(a)), stored(of(b))).map(({ better, differs, ratio }) => [
      differs,
      better,
      ratio.value,
    ])

  it("differ where all of one lie above all of the other, and there are enough", () => {
    expect(compared([1, 2, 3, 4], [10, 20, 30, 40])).toEqual([[true, "A", 10]])
    expect(compared([1, 2, 3, 4], [4, 20, 30, 40])).toEqual([[false, undefined, 10]])
    // Of 20 orders of six readings two have all of one above the other: chance.
    expect(compared([1, 2, 3], [10, 20, 30])).toEqual([[false, undefined, 10]])
  })

  it("that could not be read, and zeros, are not compared", () => {
    expect(compared([Number.NaN], [1])).toEqual([])
    expect(compared([0], [1])).toEqual([])
  })
})

describe("a page", () => {
  const points = [pointOf(100, 1).section, { ...pointOf(300, 1).section, name: "80 requests/s" }]
  const result = stored(resultOf(100, 1, { sections: points }))

  it.each([
    ["of a result", () => pageOf(result)],
    ["of a comparison", () => comparisonPageOf(result, stored(resultOf(130, 2)))],
  ])("%s is whole, escapes what servers say and fetches nothing", (_, make) => {
    const page = make()
    expect(page).toMatch(/^<!doctype html>.*<\/html>\n$/s)
    expect(page).not.toContain("<script>")
    expect(page).not.toContain("<b>busy</b>")
    expect(page).not.toMatch(/NaN|undefined|Infinity/)
    expect(page.match(/<svg/g)!.length).toBe(page.match(/<\/svg>/g)!.length)
    expect(page).toContain("prefers-color-scheme:dark")
  })

  it("has plots of the knee, of the times and of the requests", () => {
    const page = pageOf(result)
    for (const title of ["Goodput by load", "Times by percentile", "Requests by the moment"])
      expect(page).toContain(title)
  })

  it("and the table of a run without a success have no figures", () => {
    const collector = new PointCollector(undefined, 10_000)
    const outcome: Outcome = { kind: "text", failure: { key: "401", detail: "no" } }
    collector.add({ index: 0, scheduledMs: 0, endMs: 0, counted: true, outcome })
    const { section } = collector.result({ loop: "closed", clients: 1 }, driven)
    const failed = stored({ ...resultOf(1, 1), sections: [section] })
    expect(pageOf(failed)).not.toContain("NaN")
    expect(reportText(failed)).toContain("1 failed (401): no")
  })
})

it("a plot of any numbers has finite places", () => {
  const number = fc.oneof(fc.double(), fc.constantFrom(0, 1, -1, 1e-9, 1e12))
  fc.assert(
    fc.property(
      fc.array(fc.tuple(number, number), { maxLength: 20 }),
      fc.boolean(),
      fc.boolean(),
      (points, x, y) => {
        const finite = points.filter((point) =>
          point.every((one) => Number.isFinite(one) && Math.abs(one) < 1e15),
        )
        const plot = drawPlot({
          title: "t",
          x: { label: "x", log: x },
          y: { label: "y", log: y },
          series: [{ name: "s", colour: 1, form: "line and dots", points: finite }],
        })
        expect(plot).not.toMatch(/NaN|Infinity/)
      },
    ),
  )
})

it.each([
  "",
  "7",
  "null",
  "{}",
  '{"form":"edgewise-result"}',
  '{"form":"edgewise-result","version":2,"sections":[]}',
])("refuses %s as a result", (text) => {
  expect(() => readResult(text, "a.json")).toThrow(WrongResult)
})

it("numbers have three digits and their unit", () => {
  expect([1e-9, 0.00123456, 1.5, 20, 99.96, 123.4, 99_999].map(digits)).toEqual([
    "0",
    "0.00123",
    "1.5",
    "20",
    "100",
    "123",
    "99999",
  ])
  expect([shown(12_345, "ms"), shown(0.05, "share"), shown(null, "ms")]).toEqual(["12.3 s", "5 %", "- ms"])
})
