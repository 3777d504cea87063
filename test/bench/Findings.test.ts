// The output format of the benches.
import { expect, it } from "vitest"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { asJson, asText, finding, isMet, number, type Report } from "../../bench/support/Findings.ts"

const machine = describeMachine(new Date("2026-01-02T03:04:05Z"))

const report: Report = {
  suite: "text",
  quick: false,
  machine,
  elapsedSeconds: 61.4,
  sections: [
    {
      title: "Cost",
      method: "by turns",
      findings: [
        finding("gateway", "us/token", [9, 5, 7]),
        finding("over raw", "x", [1.2, 1.4, 1.25], { is: "at most", value: 1.3 }),
      ],
    },
    {
      title: "Speed",
      method: "by turns",
      findings: [
        finding("through HTTP over bare", "x", [0.9], { is: "at least", value: 0.95 }),
        finding("engine processes", "us", [Number.NaN]),
      ],
    },
  ],
}

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
  const lines = asText(report).split("\n")
  expect(lines[0]).toBe("edgewise bench text, 61 s")
  expect(lines[1]).toBe(machineLine(machine))
  expect(lines[1]).toContain("2026-01-02T03:04:05.000Z")
  const row = (name: string) => lines.find((line) => line.trim().startsWith(name)) ?? ""
  expect(row("gateway")).toMatch(/7\.00 {2}us\/token +5\.00 to 9\.00 +3$/)
  expect(row("over raw")).toMatch(/1\.25 {2}x +1\.20 to 1\.40 +3 {2}at most 1\.3: met$/)
  expect(row("through HTTP")).toContain("at least 0.95: MISSED")
  expect(row("gateway").indexOf("us/token")).toBe(row("through HTTP").indexOf("x  "))
})

it("prints the same as JSON, without numbers that JSON does not have", () => {
  const parsed = JSON.parse(asJson(report)) as Report
  expect(parsed.machine).toEqual(machine)
  expect(parsed.sections.map(({ findings }) => findings.map((found) => Reflect.get(found, "met")))).toEqual([
    [null, true],
    [false, null],
  ])
  expect(parsed.sections[1]?.findings[1]?.spread.median).toBeNull()
})
