// Inserts an entry into the text of a catalog and removes one, and leaves every other byte as it is: comments, indentation
// and the order of keys are the operator's. Pure.
//
// An entry is inserted behind what stands behind the last one, so a comment beside that one stays beside it. Only white
// space that an insertion has made is removed again, so inserting and removing give the same bytes.
import { createScanner, findNodeAtLocation, type Node, parseTree } from "jsonc-parser"

/** Kinds of tokens in the numbering of jsonc-parser, whose enumeration exists for its compiler only. */
const comma = 5
const lineComment = 12
const lineBreak = 14
const whiteSpace = 15
const endOfText = 17

interface Change {
  readonly from: number
  readonly to: number
  readonly text: string
}

const applied = (text: string, changes: ReadonlyArray<Change>): string =>
  changes
    .toSorted((a, b) => b.from - a.from)
    .reduce((result, { from, text: into, to }) => result.slice(0, from) + into + result.slice(to), text)

/** The list of models, if the text is a catalog. */
const listOf = (text: string): Node | undefined => {
  const root = parseTree(text, [], { disallowComments: false })
  const list = root === undefined ? undefined : findNodeAtLocation(root, ["models"])
  return list?.type === "array" ? list : undefined
}

const endOf = ({ length, offset }: Node): number => offset + length

/** Where the last token or comment before `before` ends, beginning at `from`, and whether it is a comment to the line's end. */
const lastTokenEnd = (text: string, from: number, before: number) => {
  const scanner = createScanner(text.slice(0, before), false)
  scanner.setPosition(from)
  let end = from
  let isLineComment = false
  for (let kind = scanner.scan(); kind !== endOfText; kind = scanner.scan()) {
    if (kind === whiteSpace || kind === lineBreak) continue
    end = scanner.getTokenOffset() + scanner.getTokenLength()
    isLineComment = kind === lineComment
  }
  return { end, isLineComment }
}

/** White space before the first value of a line. */
const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset))?.[0] ?? ""

/** The line ends of the text. */
const lineEnd = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n")

/**
 * The text with one more entry at the end of its list. Undefined if the text has no list of models.
 * @param lines the entry, not indented
 */
export const withEntry = (text: string, lines: ReadonlyArray<string>): string | undefined => {
  const list = listOf(text)
  if (list === undefined) return undefined
  const last = list.children?.at(-1)
  const begin = last === undefined ? list.offset + 1 : endOf(last)
  const { end } = lastTokenEnd(text, begin, endOf(list) - 1)
  const indent = last === undefined ? `${indentAt(text, list.offset)}  ` : indentAt(text, last.offset)
  const entry = lines.map((line) => `${lineEnd(text)}${indent}${line}`).join("")
  // The comma stands behind the entry itself, before a comment beside it.
  return applied(
    text,
    last === undefined || end > begin
      ? [
          { from: end, to: end, text: entry },
          ...(last === undefined ? [] : [{ from: begin, to: begin, text: "," }]),
        ]
      : [{ from: end, to: end, text: `,${entry}` }],
  )
}

/** Where the first comma behind `from` stands. Comments may stand before it. */
const commaBehind = (text: string, from: number): number | undefined => {
  const scanner = createScanner(text, true)
  scanner.setPosition(from)
  return scanner.scan() === comma ? scanner.getTokenOffset() : undefined
}

/** The text without the entry of this position. Undefined if there is none. */
export const withoutEntry = (text: string, index: number): string | undefined => {
  const list = listOf(text)
  const entries = list?.children ?? []
  const entry = entries[index]
  if (list === undefined || entry === undefined) return undefined
  const before = entries[index - 1]
  const begin = before === undefined ? list.offset + 1 : endOf(before)
  const { end, isLineComment } = lastTokenEnd(text, begin, entry.offset)
  const behind = commaBehind(text, endOf(entry))
  // The last entry has no comma behind it: then that before it goes.
  const separator = behind ?? (before === undefined ? undefined : commaBehind(text, begin))
  const rest = text.slice(endOf(entry), behind) + (behind === undefined ? "" : text.slice(behind + 1))
  // What follows must not become a part of the comment before it.
  const gap = isLineComment && !/^(?:\r?\n|$)/.test(rest) ? lineEnd(text) : ""
  return applied(text, [
    { from: end, to: endOf(entry), text: gap },
    ...(separator === undefined ? [] : [{ from: separator, to: separator + 1, text: "" }]),
  ])
}

/** The position of the entry with this id. */
export const indexOfEntry = (text: string, id: string): number | undefined => {
  const entries = listOf(text)?.children ?? []
  const index = entries.findIndex((entry) => findNodeAtLocation(entry, ["id"])?.value === id)
  return index < 0 ? undefined : index
}
