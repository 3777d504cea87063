// The code blocks of a page, for tests that run what a reader would paste.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

export interface GuideBlock {
  /** `sh`, `js`, `python` and so on. */
  readonly language: string
  /** The file in which the page says to save it: `file=NAME` behind the language. Absent: it is no file. */
  readonly file: string | undefined
  readonly text: string
  /** Line of the page where the block begins. */
  readonly line: number
}

export const repository = fileURLToPath(new URL("../../..", import.meta.url))

/** @param page path from the repository's root */
export const blocksOf = (page: string, root = repository): ReadonlyArray<GuideBlock> => {
  const text = readFileSync(`${root}/${page}`, "utf8")
  return [...text.matchAll(/^```(\w+)(?: file=(\S+))?\n(.*?)^```$/gms)].map((match) => ({
    language: match[1] ?? "",
    file: match[2],
    text: match[3] ?? "",
    line: text.slice(0, match.index).split("\n").length,
  }))
}
