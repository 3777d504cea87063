// Lists all mistakes in a value that an operator wrote: unknown keys, missing keys and wrong values, each with its path
// and a sentence. Pure.
import { Result, Schema, type SchemaAST, SchemaIssue } from "effect"
import { suggestion } from "#domain/models/NearestName.ts"
import type { JsonPath, Place } from "./JsonPlaces.ts"

export interface Mistake {
  readonly path: JsonPath
  /** True if the key is at fault, not its value. */
  readonly atKey?: boolean
  /** Position, where the path alone does not give it: a key that occurs twice. */
  readonly place?: Place
  readonly problem: string
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Characters shown of a wrong value. */
const shownCharacters = 60

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text
}

const keysOf = (ast: SchemaAST.AST): ReadonlyArray<string> =>
  "propertySignatures" in ast && Array.isArray(ast.propertySignatures)
    ? ast.propertySignatures.map(({ name }) => String(name))
    : []

/** The texts that a schema of text literals allows; empty for other schemas. */
const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (ast._tag === "Literal") return typeof ast.literal === "string" ? [ast.literal] : []
  return ast._tag === "Union" ? ast.types.flatMap(literalsOf) : []
}

const valueAt = (value: unknown, path: JsonPath): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null
        ? (inner as Readonly<Record<string | number, unknown>>)[key]
        : undefined,
    value,
  )

/** The schema library's type names in JSON terms. */
const typeWords: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  number: "a number",
  object: "an object",
  string: "a text",
}

/** What a value must be, in words: `a value between 1 and 256`. */
const expected = (issue: SchemaIssue.Issue): string => {
  const all = format(issue).issues.map(({ message }) => {
    const text = message.replace(/^(Expected|must be) /, "")
    return text.includes(" | ") ? `one of ${text.replaceAll(" | ", ", ")}` : (typeWords[text] ?? text)
  })
  return [...new Set(all)].join(" or ")
}

const wrongValue = (issue: SchemaIssue.Issue, value: unknown): string => {
  const known = "ast" in issue ? literalsOf(issue.ast) : []
  const near = typeof value === "string" && known.length > 0 ? suggestion(value, known) : undefined
  const hint = near === undefined || !near.includes("did you mean") ? "" : near
  return `${shown(value)} is not allowed; allowed is ${expected(issue)}${hint}`
}

const mistakesOf = (issue: SchemaIssue.Issue, path: JsonPath, value: unknown): ReadonlyArray<Mistake> => {
  switch (issue._tag) {
    case "Pointer": {
      const below = issue.path.map((key) => (typeof key === "number" ? key : String(key)))
      const inner = issue.issue
      if (inner._tag === "UnexpectedKey") {
        const name = String(below.at(-1))
        const problem = `is not a known key${suggestion(name, keysOf(inner.ast))}`
        return [{ path: [...path, ...below], atKey: true, problem }]
      }
      return mistakesOf(inner, [...path, ...below], valueAt(value, below))
    }
    case "Encoding":
      return mistakesOf(issue.issue, path, value)
    case "Composite":
      return issue.issues.flatMap((inner) => mistakesOf(inner, path, value))
    case "AnyOf": {
      // One of several forms can be meant: an object, where null is the other.
      const [only] = issue.issues
      if (issue.issues.length === 1 && only !== undefined) return mistakesOf(only, path, value)
      return [{ path, problem: wrongValue(issue, value) }]
    }
    case "MissingKey":
      return [{ path, problem: "is missing" }]
    default:
      return [{ path, problem: wrongValue(issue, value) }]
  }
}

/** The decoded value, or all mistakes in it. Keys that the schema does not know are mistakes. */
export const decodeStrictly = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  value: unknown,
): Result.Result<S["Type"], ReadonlyArray<Mistake>> =>
  Result.mapError(
    Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })(value),
    ({ issue }) => mistakesOf(issue, [], value),
  )
