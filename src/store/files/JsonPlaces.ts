// Parses a hand-written JSON file, which may have comments, and keeps the position of each key and value, so that mistakes
// are reported with line and column. Pure.
import {
  findNodeAtLocation,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
  stripComments,
} from "jsonc-parser"

export type JsonPath = ReadonlyArray<string | number>

/** Line and column count from 1. The column counts UTF-16 units, as editors do. */
export interface Place {
  readonly line: number
  readonly column: number
}

export interface JsonPlaces {
  readonly value: unknown
  /** Position of the value at a path, or of its nearest existing parent. */
  readonly placeOfValue: (path: JsonPath) => Place
  /** Position of the last key of a path. */
  readonly placeOfKey: (path: JsonPath) => Place
  /** Keys that occur twice in their object, at the second occurrence. */
  readonly repeatedKeys: ReadonlyArray<{ readonly path: JsonPath; readonly place: Place }>
}

interface BadJson {
  readonly problem: string
  readonly place: Place
}

/** Messages by the parser's error names. */
const problems: Readonly<Record<string, string>> = {
  InvalidSymbol: "this is not a JSON value; texts need double quotes",
  InvalidNumberFormat: "this is not a number",
  PropertyNameExpected: "a key in double quotes is expected here",
  ValueExpected: "a value is expected here; is there an extra comma?",
  ColonExpected: "a colon is expected here",
  CommaExpected: "a comma is expected here",
  CloseBraceExpected: "a closing brace is expected here",
  CloseBracketExpected: "a closing bracket is expected here",
  EndOfFileExpected: "the file should end here",
  UnexpectedEndOfComment: "the end */ of this comment is missing",
  UnexpectedEndOfString: "the closing quote of this text is missing",
  InvalidCharacter: "this character must be escaped in a text",
}

const placeAt = (text: string, offset: number): Place => {
  const before = text.slice(0, offset)
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") }
}

/** The syntax tree. Undefined if the nesting is too deep for the stack. */
const treeOf = (text: string, errors: Array<ParseError>): Node | undefined => {
  try {
    return parseTree(text, errors, { disallowComments: false, allowTrailingComma: false })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Undefined for the rare text that the tree parser accepts and JSON does not, e.g. with other white space. */
const valueOf = (text: string): unknown => {
  try {
    return JSON.parse(stripComments(text, " "))
  } catch {
    return undefined
  }
}

/** The property node of a value; for list items and the root, the value itself. */
const keyNode = (node: Node): Node => (node.parent?.type === "property" ? node.parent : node)

const repeated = (node: Node, path: JsonPath, found: Array<{ path: JsonPath; offset: number }>): void => {
  const keys = new Set<string>()
  for (const [index, child] of (node.children ?? []).entries()) {
    const [key, value] = node.type === "object" ? (child.children ?? []) : [undefined, child]
    const name: string | number = key === undefined ? index : String(key.value)
    if (key !== undefined) {
      if (keys.has(key.value)) found.push({ path: [...path, name], offset: key.offset })
      keys.add(key.value)
    }
    if (value !== undefined) repeated(value, [...path, name], found)
  }
}

export const parseJsonFile = (source: string): JsonPlaces | BadJson => {
  // Some editors write a byte order mark.
  const text = source.replace(/^\uFEFF/, "")
  const start = { line: 1, column: 1 }
  if (text.trim() === "") return { problem: "the file is empty", place: start }
  const errors: Array<ParseError> = []
  const root = treeOf(text, errors)
  const [first] = errors
  if (first !== undefined) {
    return {
      problem: `not valid JSON: ${problems[printParseErrorCode(first.error)] ?? "this is not allowed here"}`,
      place: placeAt(text, first.offset),
    }
  }
  if (root === undefined) return { problem: "is nested too deeply", place: start }
  const value = valueOf(text)
  if (value === undefined) return { problem: "not valid JSON", place: start }
  const nodeAt = (path: JsonPath): Node | undefined => findNodeAtLocation(root, [...path])
  const placeOfValue = (path: JsonPath): Place => {
    for (let length = path.length; length > 0; length--) {
      const node = nodeAt(path.slice(0, length))
      if (node !== undefined) return placeAt(text, node.offset)
    }
    return placeAt(text, root.offset)
  }
  const found: Array<{ path: JsonPath; offset: number }> = []
  repeated(root, [], found)
  return {
    value,
    placeOfValue,
    placeOfKey: (path) => {
      const node = nodeAt(path)
      return node === undefined ? placeOfValue(path) : placeAt(text, keyNode(node).offset)
    },
    repeatedKeys: found.map(({ path, offset }) => ({ path, place: placeAt(text, offset) })),
  }
}
