// The form in which a run leaves its figures. `bench -- SUITE --json` prints one for the whole run; bench/results has a file
// for each section, the newest run of it, from which the figures in the docs are written (bench/figures).
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import type { Machine } from "#harness/report/Machine.ts"
import { type Finding, type Goal, isMet, type Section } from "../support/Findings.ts"
import type { Measured } from "../support/Suite.ts"
import type { Beside } from "./Beside.ts"

export const resultForm = "edgewise-suite"
/** Raised when a field changes its meaning or goes. */
export const resultVersion = 1

/** One quantity: the median of its readings, the lowest and the highest. `null`: it could not be read. */
export interface Figure {
  /** Unique in its part; that of a detail begins with the name that it belongs to. */
  readonly name: string
  readonly unit: string
  readonly median: number | null
  readonly low: number | null
  readonly high: number | null
  readonly readings: number
  readonly goal?: Goal
  readonly met?: boolean
}

export interface Part {
  readonly title: string
  readonly method: string
  readonly figures: ReadonlyArray<Figure>
}

/** Where, when and with what a suite ran. */
export interface RunFacts {
  readonly suite: string
  /** Of generated weights. */
  readonly size?: string
  readonly threads?: number
  readonly quick: boolean
  readonly machine: Machine
  /** The commit; `-dirty` after it if files were changed. */
  readonly revision: string
  /** The transport of the nodes that were measured; absent if there were none. */
  readonly transport?: string
  readonly beside?: Beside
  /** Absent in results that were kept before this form. */
  readonly elapsedSeconds?: number
  /** Why the run ended before its last section. */
  readonly failure?: string
  /** Evaluated weight file → SHA-256, for the quality of models. */
  readonly weights?: Readonly<Record<string, string>>
}

export interface Result extends RunFacts {
  readonly form: typeof resultForm
  readonly version: typeof resultVersion
  readonly sections: ReadonlyArray<{ readonly name: string; readonly parts: ReadonlyArray<Part> }>
}

/** JSON has no NaN. Six significant digits: more than any figure has, so that a page's three are rounded once. */
const rounded = (value: number): number | null =>
  Number.isFinite(value) ? Number(value.toPrecision(6)) : null

const figureOf = (found: Finding, name: string): Figure => {
  const { goal, spread, unit } = found
  const met = isMet(found)
  return {
    name,
    unit,
    median: rounded(spread.median),
    low: rounded(spread.low),
    high: rounded(spread.high),
    readings: spread.readings,
    ...(goal === undefined ? {} : { goal }),
    ...(met === undefined ? {} : { met }),
  }
}

/** Findings are indented below the one that they are details of. */
const partOf = ({ findings, method, title }: Section): Part => {
  let above = ""
  const figures = findings.map((found) => {
    const what = found.what.trim()
    if (!found.what.startsWith(" ")) above = what
    return figureOf(found, found.what.startsWith(" ") ? `${above}: ${what}` : what)
  })
  return { title, method, figures }
}

export const resultOf = (facts: RunFacts, measured: ReadonlyArray<Measured>): Result => ({
  form: resultForm,
  version: resultVersion,
  ...facts,
  sections: measured.map(({ found, name }) => ({ name, parts: found.map(partOf) })),
})

const folder = new URL("../results/", import.meta.url)

/** Runs with other weights or neighbours have files of their own. */
export const fileNameOf = (
  { beside, size, suite, threads }: Pick<RunFacts, "suite" | "size" | "threads" | "beside">,
  section: string,
): string => {
  const parts = [
    suite,
    ...(size === undefined ? [] : [`size-${size}`]),
    ...(threads === undefined ? [] : [`threads-${threads}`]),
    ...(beside === undefined ? [] : [`beside-${beside.processes}-nice-${beside.nice}`]),
    section,
  ]
  return `${parts.join(".")}.json`
}

/** Indented JSON with a line for each figure, so that the files are short to read and to compare. */
export const fileText = (result: Result): string => {
  const figures: Array<string> = []
  const outline = JSON.stringify(
    result,
    (key, value: unknown) => (key === "figures" ? (value as Part["figures"]).map(placeOf) : value),
    1,
  )
  function placeOf(figure: Figure): string {
    return `figure ${figures.push(JSON.stringify(figure)) - 1}`
  }
  return `${outline.replaceAll(/"figure (\d+)"/g, (_, at: string) => figures[Number(at)] ?? "")}\n`
}

/** Writes a file for each section, in place of that of an earlier run. Returns their names. */
export const keepResult = (result: Result): ReadonlyArray<string> => {
  mkdirSync(folder, { recursive: true })
  return result.sections.map((section) => {
    const name = fileNameOf(result, section.name)
    writeFileSync(new URL(name, folder), fileText({ ...result, sections: [section] }))
    return name
  })
}

/** All results in bench/results, by the names of their files. */
export const keptResults = (): ReadonlyMap<string, Result> => {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"))
  return new Map(
    names.toSorted().map((name) => {
      const result = JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Result
      if (result.form !== resultForm || result.version !== resultVersion)
        throw new Error(`bench/results/${name} has another form than ${resultForm} ${resultVersion}`)
      return [name, result]
    }),
  )
}
