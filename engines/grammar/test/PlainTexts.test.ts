// Texts of string schemas without quotes and escapes, against the rules of the same schemas.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { Automaton } from "#engines/grammar/Expression.ts"
import { plainTexts } from "#engines/grammar/PlainTexts.ts"
import { schemaRules } from "#engines/grammar/schema/SchemaRules.ts"
import { without } from "#engines/grammar/Without.ts"
import { matches } from "../../../test/engines/llama/tools/Matching.ts"

const allowed = without("\n</end>")
const rulesOf = (schema: Record<string, string | number>) => {
  const found = schemaRules(schema, { strict: true, notation: "spaced", prefix: "x" })
  if ("problem" in found) throw new Error(found.problem.detail)
  return found.rules
}
const plainOf = (schema: Record<string, string | number>): Automaton => {
  const plain = plainTexts(rulesOf({ type: "string", ...schema }), allowed)
  if (plain === undefined) throw new Error("no plain form")
  return plain
}
const takes = (automaton: Automaton, text: string) =>
  matches({ root: { kind: "automaton", automaton }, rules: new Map() }, text)

const schemas = [
  { pattern: "^[A-Z]{2,3}$" },
  { pattern: 'a"\\\\\\n' },
  { minLength: 2 },
  { minLength: 1, maxLength: 3 },
  { maxLength: 2 },
  { format: "date" },
  { format: "email", maxLength: 20 },
  { pattern: "^x", minLength: 2, maxLength: 4 },
]

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 6 }),
  fc.stringMatching(/^[A-Z]{1,4}$/),
  fc.constantFrom(
    "",
    'a"\\\n',
    "x",
    "xy",
    "xyzzy",
    "2024-02-29",
    "2024-13-01",
    "a@b.org",
    "\n</end>",
    "😀😀",
    "a\tb",
  ),
)

it.each(schemas)("%j: the same texts as the rules of the schema, without quotes", (schema) => {
  const rules = rulesOf({ type: "string", ...schema })
  const plain = plainOf(schema)
  fc.assert(
    fc.property(text, (value) => {
      const fits = matches(rules, JSON.stringify(value)) && !value.includes("\n</end>")
      expect([value, takes(plain, value)]).toEqual([value, fits])
    }),
    { numRuns: 60 },
  )
})

it("rules of another form, and too many states, have no plain form", () => {
  expect(plainTexts(rulesOf({ type: "integer" }), allowed)).toBeUndefined()
  expect(plainTexts(rulesOf({ type: "string", minLength: 100_000 }), allowed)).toBeUndefined()
})
