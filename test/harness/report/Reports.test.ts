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
import { digits, shown } from "#harness/report/Format.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { pageOf } from "#harness/report/Page.ts"
import { drawPlot } from "#harness/report/Plots.ts"
import { type Result, readResult, WrongResult } from "#harness/report/Result.ts"
import { PointCollector } from "#harness/report/Summarize.ts"
import { linesOf } from "#harness/report/Table.ts"

const client = {
  client_lag_p99_ms: 1,
  client_lag_max_ms: 2,
  send_late_p99_ms: 1,
  cpu_ms_per_request: 1,
  core_share: 0.1,
}
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
  form: "edgewise-bench",
  version: 1,
  suite: "text",
  tool: { name: "edgewise", version: "0", commit: "c" },
  machine: describeMachine(new Date(0)),
  target: { url: "http://a", reported: { models: ["<script>alert(1)</script>"] } },
  settings: { seed },
  points: [pointOf(ttftMs, seed)],
  ...rest,
})

/** As it is read from a file. */
const stored = (result: Result): Result => readResult(JSON.stringify(result), "a.json")

describe("a point", () => {
  it("counts failures, goodput, rates and words", () => {
    const point = pointOf(100, 1)
    expect(point).toMatchObject({
      requests: 400,
      failed: 40,
      errors: { "503": 40 },
      completed_per_second: 36,
      output_tokens_per_second: 360,
    })
    expect(point.goodput.share.value).toBeCloseTo(0.9, 9)
    expect(point.broken).toEqual(["10.0 % of the requests failed"])
    expect(point.kinds.text!.word_error_percent).toBe(5)
    expect(point.kinds.text!.figures.itl).toMatchObject({ count: 3 * 360, p50: { value: 2 } })
    expect(Latencies.decoded(point.kinds.text!.figures.ttft!.histogram).count).toBe(360)
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
    const point = collector.result({ loop: "closed", clients: 1 }, { ...driven, elapsedMs: 14_000 })
    expect(point).toMatchObject({ requests: 3, completed_per_second: 0.3, output_tokens_per_second: 15 })
    expect(point.goodput.per_second).toBeCloseTo(0.1, 9)
  })

  it("takes requests longer than the measured time from those that began in it", () => {
    const collector = new PointCollector(undefined, 1_000)
    const outcome: Outcome = { kind: "live", measured: { figures: { audio: 4 } } }
    collector.add({ index: 0, scheduledMs: 500, endMs: 5_000, counted: true, outcome })
    const point = collector.result({ loop: "closed", clients: 1 }, { ...driven, elapsedMs: 5_000 })
    expect(point).toMatchObject({ completed_per_second: 0.2, audio_seconds_per_second: 0.8 })
  })

  it("counts what was never sent as failed", () => {
    const point = new PointCollector(undefined, 10_000).result(
      { loop: "closed", clients: 1 },
      { ...driven, neverSent: 5 },
    )
    expect(point).toMatchObject({ requests: 5, failed: 5, errors: { "never sent": 5 } })
  })

  it("keeps at most 2,000 requests of the timeline", () => {
    const collector = new PointCollector(undefined, 10_000)
    for (let index = 0; index < 5_001; index++) {
      const outcome: Outcome = { kind: "text", measured: { figures: { e2e: 1 } } }
      collector.add({ index, scheduledMs: index, endMs: index, counted: true, outcome })
    }
    const { requests, timeline } = collector.result({ loop: "closed", clients: 1 }, driven)
    expect(requests).toBe(5_001)
    expect(timeline.length).toBeLessThanOrEqual(2_000)
  })
})

describe("a comparison", () => {
  it("finds what differs, and which is better", () => {
    const ratios = compareResults(stored(resultOf(100, 1)), stored(resultOf(200, 2)))
    const ttft = ratios.filter(({ figure }) => figure === "ttft")
    expect(ttft.map(({ measure }) => measure)).toEqual(["mean", "p50", "p95", "p99"])
    for (const { better, ratio } of ttft.slice(0, 3)) {
      expect(ratio.value).toBeGreaterThan(1.8)
      expect(ratio.value).toBeLessThan(2.2)
      expect(better).toBe("A")
    }
  })

  it("takes equal servers for equal", () => {
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
    expect(differencesOf(a, { ...a, settings: { seed: 2 } })).toEqual([])
    expect(differencesOf(a, { ...a, suite: "speech", settings: { model: "b" } })).toEqual([
      "the suites differ: text and speech",
      "the settings differ (requests, models or data)",
    ])
    expect(differencesOf(a, { ...a, points: [] })).toContain("no point of the two has the same load")
  })
})

describe("a page", () => {
  const knee = { unit: "requests per second", held: 40, broke: 80 } as const
  const result = stored(resultOf(100, 1, { knee }))

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
    const failed = {
      ...resultOf(1, 1),
      points: [collector.result({ loop: "closed", clients: 1 }, driven)],
    }
    expect(pageOf(stored(failed))).not.toContain("NaN")
    expect(linesOf(stored(failed)).join("\n")).toContain("1 failed (401): no")
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
  '{"form":"edgewise-bench"}',
  '{"form":"edgewise-bench","version":2,"points":[]}',
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
  expect([shown(12_345, "ms"), shown(0.05, "share"), shown(Number.NaN, "ms")]).toEqual(["12.3 s", "5 %", "–"])
})
