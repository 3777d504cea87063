// What a suite found and how it is printed: a section for each question, a row for each quantity. Pure.

import { type Spread, spreadOf } from "#harness/figures/Statistics.ts"
import { machineLine } from "#harness/report/Machine.ts"
import type { Beside } from "../run/Beside.ts"
import type { RunFacts } from "../run/ResultFile.ts"

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

export const asText = (
  facts: RunFacts,
  measured: ReadonlyArray<{ readonly found: ReadonlyArray<Section> }>,
): string => {
  const { beside, elapsedSeconds = 0, failure, machine, quick, size, suite, transport } = facts
  const sized = size === undefined ? "" : ` --size ${size}`
  const lines = [
    `edgewise bench ${suite}${sized}${quick ? " --quick" : ""}, ${elapsedSeconds.toFixed(0)} s`,
    machineLine(machine),
    ...(transport === undefined ? [] : [transport]),
    ...(beside === undefined ? [] : [besideLine(beside)]),
    ...(failure === undefined ? [] : [`PARTIAL: ${failure}`]),
  ]
  // Column widths are the same in the whole report, so that values can be compared down a column.
  const sections = measured.flatMap(({ found }) => found)
  const rows = aligned([heading, ...sections.flatMap(({ findings }) => findings.map(cells))])
  let next = 1
  for (const { findings, method, title } of sections) {
    lines.push("", title, `  ${method}`, `  ${rows[0]}`)
    for (const row of rows.slice(next, next + findings.length)) lines.push(`  ${row}`)
    next += findings.length
  }
  return lines.join("\n")
}

export const besideLine = ({ cores, nice, processes }: Beside): string =>
  `beside ${processes} busy processes at nice ${nice}, which used ${cores} cores`
