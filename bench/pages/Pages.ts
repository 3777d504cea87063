// The pages whose figures are written from bench/results: README.md, the docs, the model cards and the benches' own pages.
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { keptResults } from "../run/ResultFile.ts"
import { unmarked, WrongBlock, withFigures } from "./Blocks.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

const patterns = ["README.md", "docs/**/*.md", "models/*/README.md", "bench/**/*.md"]
/** The dates in them are those of other projects' commits and of examples. */
const withoutFigures = ["docs/comparison.md", "docs/operator-mistakes.md"]

interface Page {
  readonly path: string
  readonly text: string
  /** As it should be. */
  readonly written: string
  /** What is wrong with it and cannot be written, as sentences. */
  readonly wrong: ReadonlyArray<string>
}

export const pages = (): ReadonlyArray<Page> => {
  const results = keptResults()
  return globSync(patterns, { cwd: root })
    .filter((path) => !withoutFigures.includes(path))
    .toSorted()
    .map((path) => {
      const text = readFileSync(root + path, "utf8")
      const marks = unmarked(text).map(
        (line) => `a figure with a date and without a file does not say "no file": ${line.slice(0, 90)}`,
      )
      try {
        return { path, text, written: withFigures(text, results), wrong: marks }
      } catch (cause) {
        if (!(cause instanceof WrongBlock)) throw cause
        return { path, text, written: text, wrong: [...marks, cause.message] }
      }
    })
}

/** Writes the pages that differ and returns their paths. */
export const writePages = (): ReadonlyArray<string> =>
  pages().flatMap(({ path, text, written }) => {
    if (written === text) return []
    writeFileSync(root + path, written)
    return [path]
  })
