// Figures in Markdown pages. The text between two comments (a block) is written from a file of bench/results, so every figure in it
// was measured:
//
//   <!-- figures: text.latency.json -->
//   <!-- end of figures -->
//
// `<!-- figures: FILE; only: NAME; NAME -->` shows only these figures of the file. Outside of blocks, a paragraph with the date
// of a measurement must contain the words "no file"; `unmarked` lists those that do not. Pure.
import type { Part } from "#harness/report/Figure.ts"
import { factLines, type Table, tableOf } from "#harness/report/Report.ts"
import type { SuiteResult } from "../run/ResultFile.ts"

/** A block that cannot be written, as one sentence. */
export class WrongBlock extends Error {}

/** At the beginning of a line; an indented one is an example. */
const beginComment = /^<!-- figures: ([^;>]+?)(?:; only: ([^>]+?))? -->/m
const end = "<!-- end of figures -->"

const cellsOf = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

/** A table of the report in Markdown. */
const markdown = ({ heading, rows }: Table): string =>
  [heading, heading.map(() => "---"), ...rows].map(cellsOf).join("\n")

const table = ({ figures, method, title }: Part): ReadonlyArray<string> =>
  figures.length === 0 ? [] : [`**${title}.** ${method}`, markdown(tableOf(figures))]

const commandOf = ({ neighbours, sections, settings: { size, threads }, suite }: SuiteResult): string => {
  const flags = [
    ...(size === undefined ? [] : [`--size ${size}`]),
    ...(threads === undefined ? [] : [`--threads ${threads}`]),
    ...sections.map(({ name }) => `--section ${name}`),
    ...(neighbours === undefined
      ? []
      : [`--beside ${neighbours.processes} --beside-nice ${neighbours.nice}`]),
    ...(neighbours?.pulseMs === undefined ? [] : [`--beside-pulse-ms ${neighbours.pulseMs}`]),
  ]
  return ["npm run -s bench --", suite, ...flags].join(" ")
}

const origin = (file: string, result: SuiteResult): string =>
  `\`${commandOf(result)}\`: ${factLines(result).join(" · ")} · \`bench/results/${file}\`.`

const block = (file: string, names: ReadonlyArray<string> | undefined, result: SuiteResult): string => {
  const parts = result.sections.flatMap((section) => section.parts)
  const has = (name: string) => parts.some(({ figures }) => figures.some((figure) => figure.name === name))
  const unknown = names?.find((name) => !has(name))
  if (unknown !== undefined) throw new WrongBlock(`bench/results/${file} has no figure "${unknown}"`)
  const picked = parts.map((part) => ({
    ...part,
    figures: part.figures.filter(({ name }) => names?.includes(name) ?? true),
  }))
  return [...picked.flatMap(table), origin(file, result)].join("\n\n")
}

/** The page with its blocks written anew. @throws WrongBlock */
export const withFigures = (page: string, results: ReadonlyMap<string, SuiteResult>): string => {
  let written = ""
  let rest = page
  for (;;) {
    const begin = beginComment.exec(rest)
    if (begin === null) return written + rest
    const [comment, file = "", only] = begin
    const result = results.get(file)
    if (result === undefined) throw new WrongBlock(`there is no file bench/results/${file}`)
    const from = begin.index + comment.length
    const to = rest.indexOf(end, from)
    if (to < 0) throw new WrongBlock(`the figures of ${file} have no end`)
    const names = only?.split("; ").map((name) => name.trim())
    written += `${rest.slice(0, from)}\n\n${block(file, names, result)}\n\n${end}`
    rest = rest.slice(to + end.length)
  }
}

/** A day, but not a time of day, a commit's day or a value in code. */
const day = /(?<![\w/-])20\d\d-\d\d-\d\d(?![T\w-])/

const withoutCode = (text: string): string => text.replaceAll(/```[\s\S]*?```|`[^`\n]*`|^ {4,}.*$/gm, "")

/** First lines of the paragraphs that date a figure and have no file, without saying so. */
export const unmarked = (page: string): ReadonlyArray<string> => {
  const outside = page.replaceAll(new RegExp(`${beginComment.source}[\\s\\S]*?${end}`, "gm"), "")
  return withoutCode(outside)
    .split(/\n\s*\n/)
    .filter((paragraph) => day.test(paragraph) && !/\bno(?: results)?\s+file\b/.test(paragraph))
    .map((paragraph) => paragraph.trim().split("\n")[0] ?? "")
}
