// The results of a suite and how they are printed: a section for each question, a row for each quantity, as a table or
// as JSON. Pure.

import { type Spread, spreadOf } from "#harness/figures/Statistics.ts"
import { type Machine, machineLine } from "#harness/report/Machine.ts"

export interface Goal {
  readonly is: "at most" | "at least"
  readonly value: number
}

/** One measured quantity. */
export interface Finding {
  readonly what: string
  readonly unit: string
  readonly spread: Spread
  readonly goal?: Goal
}

/** One question, the quantities that answer it, and how they were measured. */
export interface Section {
  readonly title: string
  readonly method: string
  readonly findings: ReadonlyArray<Finding>
}

export interface Report {
  readonly suite: string
  readonly quick: boolean
  readonly machine: Machine
  /** The setting EDGEWISE_TRANSPORT of the nodes that were measured; absent if there were none. */
  readonly transport?: string
  readonly elapsedSeconds: number
  readonly sections: ReadonlyArray<Section>
}

export const finding = (what: string, unit: string, values: ReadonlyArray<number>, goal?: Goal): Finding => ({
  what,
  unit,
  spread: spreadOf(values),
  ...(goal === undefined ? {} : { goal }),
})

/** Whether the median meets the goal; undefined if there is no goal. */
export const isMet = ({ goal, spread }: Finding): boolean | undefined => {
  if (goal === undefined) return undefined
  return goal.is === "at most" ? spread.median <= goal.value : spread.median >= goal.value
}

/** Three significant digits, without an exponent in the range of a bench. */
export const number = (value: number): string => {
  if (!Number.isFinite(value)) return "-"
  const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)))
  return value.toFixed(Math.min(4, Math.max(0, 2 - magnitude)))
}

const cells = (found: Finding): ReadonlyArray<string> => {
  const { goal, spread, unit, what } = found
  const range = spread.readings > 1 ? `${number(spread.low)} to ${number(spread.high)}` : ""
  if (goal === undefined) return [what, number(spread.median), unit, range, String(spread.readings), ""]
  const verdict = isMet(found) ? "met" : "MISSED"
  return [
    what,
    number(spread.median),
    unit,
    range,
    String(spread.readings),
    `${goal.is} ${goal.value}: ${verdict}`,
  ]
}

const heading = ["", "median", "unit", "lowest to highest", "runs", "goal"]
/** Numbers are right-aligned, words left-aligned. */
const rightAligned = [false, true, false, true, true, false]

const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = heading.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) =>
        rightAligned[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  )
}

export const asText = (report: Report): string => {
  const lines = [
    `edgewise bench ${report.suite}${report.quick ? " --quick" : ""}, ${report.elapsedSeconds.toFixed(0)} s`,
    machineLine(report.machine),
    ...(report.transport === undefined ? [] : [report.transport]),
  ]
  // Column widths are the same in the whole report, so that values can be compared down a column.
  const rows = aligned([heading, ...report.sections.flatMap(({ findings }) => findings.map(cells))])
  let next = 1
  for (const { findings, method, title } of report.sections) {
    lines.push("", title, `  ${method}`, `  ${rows[0]}`)
    for (const row of rows.slice(next, next + findings.length)) lines.push(`  ${row}`)
    next += findings.length
  }
  return lines.join("\n")
}

export const asJson = (report: Report): string =>
  JSON.stringify(
    {
      ...report,
      sections: report.sections.map((section) => ({
        ...section,
        findings: section.findings.map((found) => ({ ...found, met: isMet(found) ?? null })),
      })),
    },
    // JSON has no NaN; a quantity that could not be read becomes null.
    (_key, value: unknown) => (typeof value === "number" && !Number.isFinite(value) ? null : value),
    2,
  )
