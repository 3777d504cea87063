// Where the results of the suites are kept: bench/results has a file for each section, the newest run of it, from which the
// figures in the docs are written (bench/pages).
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { type Result, readResult, resultText } from "#harness/report/Result.ts"

/** The settings of a suite's run. */
interface SuiteSettings {
  readonly quick: boolean
  /** Of generated weights. */
  readonly size?: string
  readonly threads?: number
  /** Of the nodes that were measured; absent if there were none. */
  readonly transport?: string
  /** Evaluated weight file → SHA-256, for the quality of models. */
  readonly weights?: Readonly<Record<string, string>>
}

export interface SuiteResult extends Result {
  readonly settings: SuiteSettings & Result["settings"]
}

const folder = new URL("../results/", import.meta.url)

/** Runs with other weights or neighbours have files of their own. */
export const fileNameOf = (
  { neighbours, settings: { size, threads }, suite }: Pick<SuiteResult, "suite" | "settings" | "neighbours">,
  section: string,
): string => {
  const parts = [
    suite,
    ...(size === undefined ? [] : [`size-${size}`]),
    ...(threads === undefined ? [] : [`threads-${threads}`]),
    ...(neighbours === undefined
      ? []
      : [
          `beside-${neighbours.processes}-nice-${neighbours.nice}`,
          ...(neighbours.pulseMs === undefined ? [] : [`pulse-${neighbours.pulseMs}`]),
        ]),
    section,
  ]
  return `${parts.join(".")}.json`
}

/** Writes a file for each section, in place of that of an earlier run. Returns their names. */
export const keepResult = (result: SuiteResult): ReadonlyArray<string> => {
  mkdirSync(folder, { recursive: true })
  return result.sections.map((section) => {
    const name = fileNameOf(result, section.name)
    writeFileSync(new URL(name, folder), resultText({ ...result, sections: [section] }))
    return name
  })
}

/** All results in bench/results, by the names of their files. @throws WrongResult */
export const keptResults = (): ReadonlyMap<string, SuiteResult> =>
  new Map(
    readdirSync(folder)
      .filter((name) => name.endsWith(".json"))
      .toSorted()
      .map((name) => {
        const result = readResult(readFileSync(new URL(name, folder), "utf8"), `bench/results/${name}`)
        return [name, result as SuiteResult]
      }),
  )
