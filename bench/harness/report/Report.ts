// The report of a result: tables of its figures, which the text for a terminal, the HTML page (Page.ts) and the pages of the docs
// (bench/pages) show. Pure.
import { columnLines } from "#domain/process/Columns.ts"
import type { Estimate, Figure, Part } from "./Figure.ts"
import { digits, rangeOf, type Scale, scaled, scaleFor, shown, unscaled } from "./Format.ts"
import { machineLine } from "./Machine.ts"
import type { Neighbours, Result, Section } from "./Result.ts"

/** A heading and rows of cells. */
export interface Table {
  readonly heading: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

const withRange = (estimate: Estimate | undefined, scale: Scale): string => {
  if (estimate === undefined) return ""
  const range = rangeOf(estimate, scale)
  return scaled(estimate.value, scale) + (range === "" ? "" : ` (${range})`)
}

const verdict = ({ goal, met }: Figure): string =>
  goal === undefined ? "" : `${goal.is} ${goal.value}: ${met === true ? "met" : "MISSED"}`

/** All columns, in their order; those that are empty in every row are left out. */
const columns: Readonly<Record<string, (figure: Figure, scale: Scale) => string>> = {
  "": ({ name }) => name,
  median: ({ median }, scale) => scaled(median, scale),
  unit: (_, { unit }) => unit,
  "lowest to highest": (figure, scale) =>
    figure.bounds === "range" && figure.readings > 1 ? rangeOf(figure, scale) : "",
  "95 % interval": (figure, scale) => (figure.bounds === "interval" ? rangeOf(figure, scale) : ""),
  mean: ({ distribution }, scale) => withRange(distribution?.mean, scale),
  p95: ({ distribution }, scale) => withRange(distribution?.p95, scale),
  p99: ({ distribution }, scale) => withRange(distribution?.p99, scale),
  max: ({ distribution }, scale) => (distribution === undefined ? "" : scaled(distribution.max, scale)),
  readings: ({ readings }) => String(readings),
  floor: ({ floor }) => (floor === undefined ? "" : shown(floor.value, floor.unit)),
  goal: verdict,
}

/** One table of many figures, so that values can be compared down a column. */
export const tableOf = (figures: ReadonlyArray<Figure>): Table => {
  const all = figures.map((figure) => {
    const scale = scaleFor(figure.median, figure.unit)
    return Object.values(columns).map((cell) => cell(figure, scale))
  })
  const isUsed = (_: string, at: number) => at === 0 || all.some((row) => row[at] !== "")
  return { heading: Object.keys(columns).filter(isUsed), rows: all.map((row) => row.filter(isUsed)) }
}

/** A row for each part and a column for each figure, with its unit: for many parts with the same few figures. */
export const wideTable = (name: string, parts: ReadonlyArray<Part>): Table => {
  const headingOf = (figure: Figure): string =>
    [figure.name, figure.unit].filter((word) => word !== "").join(", ")
  const heads = [...new Set(parts.flatMap(({ figures }) => figures.map(headingOf)))]
  const cell = (figure: Figure | undefined): string => {
    if (figure === undefined) return ""
    const range = figure.readings > 1 ? rangeOf(figure, unscaled) : ""
    return digits(figure.median) + (range === "" ? "" : ` (${range})`)
  }
  return {
    heading: [name, ...heads],
    rows: parts.map(({ figures, title }) => [
      title,
      ...heads.map((head) => cell(figures.find((figure) => headingOf(figure) === head))),
    ]),
  }
}

const neighboursLine = ({ cores, nice, processes, pulseMs }: Neighbours): string => {
  const rest = pulseMs === undefined ? "" : ` that computed for ${pulseMs} ms and rested for as long`
  return `beside ${processes} busy processes${rest} at nice ${nice}, which used ${cores} cores`
}

const flagsOf = ({ settings }: Result): string =>
  [
    ...(settings.size === undefined ? [] : [` --size ${String(settings.size)}`]),
    ...(settings.quick === true ? [" --quick"] : []),
  ].join("")

export const titleOf = (result: Result): string =>
  result.target === undefined
    ? `${result.suite}${flagsOf(result)}`
    : `${result.suite} on ${result.target.url}`

/** What stands above the figures of every report: where they come from, and what makes them doubtful. */
export const factLines = ({
  failure,
  machine,
  neighbours,
  revision,
  settings,
}: Result): ReadonlyArray<string> => [
  machineLine(machine),
  `revision ${revision}`,
  ...(typeof settings.transport === "string" ? [settings.transport] : []),
  ...(neighbours === undefined ? [] : [neighboursLine(neighbours)]),
  ...(failure === undefined ? [] : [`PARTIAL: ${failure}`]),
]

/** Details are indented below the figure that they belong to. */
const indented = (rows: Table["rows"]): Table["rows"] => {
  let above = ""
  return rows.map(([name = "", ...rest]) => {
    if (above !== "" && name.startsWith(`${above}: `)) return [`  ${name.slice(above.length + 2)}`, ...rest]
    above = name
    return [name, ...rest]
  })
}

const partLines = (
  { method, notes = [], title }: Part,
  lines: ReadonlyArray<string>,
): ReadonlyArray<string> => [
  "",
  title,
  ...[method, ...lines, ...notes].filter((line) => line !== "").map((line) => `  ${line}`),
]

/** The lines of each part in turn, the heading first. Columns have the same width in the whole report. */
const aligned = (parts: ReadonlyArray<Part>): ReadonlyArray<ReadonlyArray<string>> => {
  const { heading, rows } = tableOf(parts.flatMap(({ figures }) => figures))
  const [head = "", ...lines] = columnLines(heading, indented(rows))
  let next = 0
  return parts.map(({ figures }) => {
    const own = lines.slice(next, next + figures.length)
    next += figures.length
    return own.length === 0 ? [] : [head, ...own]
  })
}

const sectionLines = (
  section: Section,
  tables: ReadonlyArray<ReadonlyArray<string>>,
): ReadonlyArray<string> => [
  ...(section.load === undefined ? [] : ["", `${section.name}:`]),
  ...(section.cautions ?? []).map((caution) => `  CAUTION: ${caution}`),
  ...section.parts.flatMap((part, at) => partLines(part, tables[at] ?? [])),
]

/** The report for a terminal. */
export const reportText = (result: Result): string => {
  const { elapsedSeconds, sections } = result
  const took = elapsedSeconds === undefined ? "" : `, ${digits(elapsedSeconds)} s`
  const tables = aligned(sections.flatMap(({ parts }) => parts))
  let next = 0
  const body = sections.flatMap((section) => {
    const own = tables.slice(next, next + section.parts.length)
    next += section.parts.length
    return sectionLines(section, own)
  })
  return [`${titleOf(result)}${took}`, ...factLines(result), ...body].join("\n")
}
