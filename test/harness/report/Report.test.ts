// The text report of a result, as the suites print it.
import { expect, it } from "vitest"
import { besideFloor, beyond, figure, named, ratioTo, speedOver, times } from "#harness/report/Figure.ts"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { reportText } from "#harness/report/Report.ts"
import { type Result, readResult, resultText } from "#harness/report/Result.ts"

const machine = describeMachine(new Date("2026-01-02T03:04:05Z"))

const raw = { name: "raw", unit: "us/token", values: [5, 4, 6] }
const gateway = { name: "gateway", unit: "us/token", values: [9, 5, 7] }

const result: Result = {
  form: "edgewise-result",
  version: 1,
  suite: "text",
  revision: "unknown",
  machine,
  settings: { quick: false },
  elapsedSeconds: 61.4,
  sections: [
    {
      name: "cost",
      parts: [
        named({
          title: "Cost",
          method: "by turns",
          figures: besideFloor(raw, gateway, { is: "at most", value: 1.3 }),
        }),
      ],
    },
    {
      name: "speed",
      parts: [
        named({
          title: "Speed",
          method: "by turns",
          figures: [
            figure("through HTTP over bare", "x", [0.9], { is: "at least", value: 0.95 }),
            figure("engine processes", "us", [Number.NaN]),
          ],
          notes: ["one note"],
        }),
      ],
    },
  ],
}

it("measures a goal by the median", () => {
  const atMost = { is: "at most", value: 2 } as const
  const atLeast = { is: "at least", value: 2 } as const
  expect(figure("", "", [1, 2, 9], atMost).met).toBe(true)
  expect(figure("", "", [1, 3, 3], atMost).met).toBe(false)
  expect(figure("", "", [1, 2, 9], atLeast).met).toBe(true)
  expect(figure("", "", [Number.NaN], atMost).met).toBe(false)
  expect(figure("", "", [1])).not.toHaveProperty("met")
})

it("a ratio, a speed or a difference is formed of pairs of readings, and names its floor", () => {
  expect(ratioTo(gateway, raw)).toMatchObject({
    name: "  over raw",
    unit: "x",
    median: 1.25,
    low: 1.16667,
    high: 1.8,
    floor: { name: "raw", unit: "us/token", value: 5, is: "ratio" },
  })
  expect(speedOver(gateway, raw)).toMatchObject({ name: "  speed over raw", median: 0.8 })
  expect(beyond(gateway, times(1.5, raw))).toMatchObject({
    name: "  beyond 1.5 x raw",
    unit: "us/token",
    median: -1,
    floor: { value: 7.5, is: "difference" },
  })
  expect(() => ratioTo(gateway, { ...raw, values: [1] })).toThrow("without a partner")
})

it("a detail has the name of its figure in front of its own", () => {
  expect(result.sections[0]?.parts[0]?.figures.map(({ name }) => name)).toEqual([
    "raw",
    "gateway",
    "gateway: over raw",
  ])
})

it("prints machine, method, median, spread, floor and verdict in aligned columns", () => {
  const lines = reportText(readResult(resultText(result), "a.json")).split("\n")
  expect(lines[0]).toBe("text, 61.4 s")
  expect(lines[1]).toBe(machineLine(machine))
  expect(lines[1]).toContain("2026-01-02T03:04:05.000Z")
  const row = (name: string) => lines.find((line) => line.trim().startsWith(name)) ?? ""
  expect(row("gateway")).toMatch(/ 7 {2}us\/token +5 to 9 +3$/)
  expect(row("over raw")).toMatch(
    /^ {4}over raw +1\.25 {2}x +1\.17 to 1\.8 +3 {2}5 us\/token {2}at most 1\.3: met$/,
  )
  expect(row("through HTTP")).toContain("at least 0.95: MISSED")
  expect(row("engine processes")).toMatch(/ - {2}us/)
  expect(row("gateway").indexOf("us/token")).toBe(row("through HTTP").indexOf("x  "))
  expect(lines.at(-1)).toBe("  one note")
})

it("says what ran beside, and that a run did not come to its end", () => {
  const neighbours = { processes: 2, nice: 10, cores: 1.2 }
  const lines = reportText({ ...result, neighbours, failure: "interrupted" }).split("\n")
  expect(lines).toContain("beside 2 busy processes at nice 10, which used 1.2 cores")
  expect(lines).toContain("PARTIAL: interrupted")
})

it("a file has a line for each figure, and is read as what was written", () => {
  const text = resultText(result)
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(result)))
  expect(text.split("\n").filter((line) => line.includes('"median"'))).toHaveLength(5)
})
