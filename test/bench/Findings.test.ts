// The output format of the benches.
import { expect, it } from "vitest"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { asText, finding, isMet, number } from "../../bench/support/Findings.ts"

const machine = describeMachine(new Date("2026-01-02T03:04:05Z"))

const facts = { suite: "text", quick: false, machine, revision: "unknown", elapsedSeconds: 61.4 }

const measured = [
  {
    found: [
      {
        title: "Cost",
        method: "by turns",
        findings: [
          finding("gateway", "us/token", [9, 5, 7]),
          finding("over raw", "x", [1.2, 1.4, 1.25], { is: "at most", value: 1.3 }),
        ],
      },
    ],
  },
  {
    found: [
      {
        title: "Speed",
        method: "by turns",
        findings: [
          finding("through HTTP over bare", "x", [0.9], { is: "at least", value: 0.95 }),
          finding("engine processes", "us", [Number.NaN]),
        ],
      },
    ],
  },
]

it("measures a goal by the median", () => {
  const atMost = { is: "at most", value: 2 } as const
  const atLeast = { is: "at least", value: 2 } as const
  expect(isMet(finding("", "", [1, 2, 9], atMost))).toBe(true)
  expect(isMet(finding("", "", [1, 3, 3], atMost))).toBe(false)
  expect(isMet(finding("", "", [1, 2, 9], atLeast))).toBe(true)
  expect(isMet(finding("", "", [Number.NaN], atMost))).toBe(false)
  expect(isMet(finding("", "", [1]))).toBeUndefined()
})

it("keeps three digits", () => {
  expect([0.01234, 0.5, 1.2345, 12.345, 1234.5, 0, Number.NaN].map(number)).toEqual([
    "0.0123",
    "0.500",
    "1.23",
    "12.3",
    "1235",
    "0.00",
    "-",
  ])
})

it("prints machine, method, median, spread and verdict in aligned columns", () => {
  const lines = asText(facts, measured).split("\n")
  expect(lines[0]).toBe("edgewise bench text, 61 s")
  expect(lines[1]).toBe(machineLine(machine))
  expect(lines[1]).toContain("2026-01-02T03:04:05.000Z")
  const row = (name: string) => lines.find((line) => line.trim().startsWith(name)) ?? ""
  expect(row("gateway")).toMatch(/7\.00 {2}us\/token +5\.00 to 9\.00 +3$/)
  expect(row("over raw")).toMatch(/1\.25 {2}x +1\.20 to 1\.40 +3 {2}at most 1\.3: met$/)
  expect(row("through HTTP")).toContain("at least 0.95: MISSED")
  expect(row("gateway").indexOf("us/token")).toBe(row("through HTTP").indexOf("x  "))
})

it("says what ran beside, and that a run did not come to its end", () => {
  const beside = { processes: 2, nice: 10, cores: 1.2 }
  const lines = asText({ ...facts, beside, failure: "interrupted" }, measured).split("\n")
  expect(lines).toContain("beside 2 busy processes at nice 10, which used 1.2 cores")
  expect(lines).toContain("PARTIAL: interrupted")
})
