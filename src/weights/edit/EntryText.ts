// A catalog entry as text with comments, two spaces to a level. Pure.
import { isJsonObject } from "#domain/wire/Json.ts"

/** Comments by the path of the key that they stand before, e.g. `options.slots`. The empty path stands before the first key. */
export type Comments = Readonly<Record<string, string>>

/** Characters of a line of a comment, without its indentation. */
const commentWidth = 100

/** Lines of words. Nothing in a text can end its comment. */
const wrapped = (text: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text
    .replace(/\p{C}/gu, " ")
    .split(/\s+/)
    .filter((one) => one !== "")) {
    if (line !== "" && line.length + 1 + word.length > commentWidth) {
      lines.push(line)
      line = ""
    }
    line = line === "" ? word : `${line} ${word}`
  }
  return line === "" ? lines : [...lines, line]
}

const commentLines = (comment: string | undefined): ReadonlyArray<string> =>
  comment === undefined ? [] : wrapped(comment).map((line) => `// ${line}`)

/** Values that stand on one line: texts, numbers, lists of them. */
const shortText = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : JSON.stringify(value)

const linesOf = (value: unknown, comments: Comments, path: string): ReadonlyArray<string> => {
  if (!isJsonObject(value) || Object.keys(value).length === 0) return [shortText(value)]
  const keys = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return [
    "{",
    ...keys.flatMap(([key, inner], index) => {
      const at = path === "" ? key : `${path}.${key}`
      const [first = "", ...others] = linesOf(inner, comments, at)
      const lines = [`${JSON.stringify(key)}: ${first}`, ...others]
      const comma = index < keys.length - 1 ? "," : ""
      return [...commentLines(comments[at]), ...lines.slice(0, -1), `${lines.at(-1)}${comma}`].map(
        (line) => `  ${line}`,
      )
    }),
    "}",
  ]
}

/** The lines of the entry, not indented. */
export const entryLines = (entry: object, comments: Comments): ReadonlyArray<string> => {
  const [open = "", ...others] = linesOf(entry, comments, "")
  return [open, ...commentLines(comments[""]).map((line) => `  ${line}`), ...others]
}
