// Random schemas of what strict rules hold, for property tests.

import * as fc from "fast-check"
import { expect } from "vitest"
import type { Json, JsonObject } from "../../Json.ts"
import { check } from "./Check.ts"

const keys = fc.constantFrom("a", "b", "name", "käse", "x y", 'q"', "0")
const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, false, "", "text", 'a "quote"', "line\nbreak", "\u0001", "😀"),
  fc.integer({ min: -1000, max: 1000 }),
  fc.constantFrom(0.5, -1.25, 1e21, 123456.789, 3e-5),
)
const jsonValue: fc.Arbitrary<Json> = fc.oneof(
  { weight: 3, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.dictionary(keys, scalar, { maxKeys: 3 }) },
)
const bound = fc.oneof(
  fc.integer({ min: -50, max: 50 }),
  fc.constantFrom(-0.5, 0.001, 3.14, 1e6, 2 ** 53, -(2 ** 60), 1e-7, 99.95),
)
const patterns = fc.constantFrom(
  "^[a-z]+$",
  "\\d{2,3}",
  "^(ab|cd)*$",
  "\\bx",
  "^\\p{Lu}",
  "[^a]$",
  "^.{1,4}$",
  "\\s",
  "^$",
)
const formats = fc.constantFrom(
  "date",
  "time",
  "date-time",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uri",
  "uri-reference",
  "uuid",
  "json-pointer",
  "relative-json-pointer",
  "byte",
)

/** Some of the keywords of a schema, so each may be missing. */
const some = (model: Record<string, fc.Arbitrary<Json>>): fc.Arbitrary<JsonObject> =>
  fc.record(model, { requiredKeys: [] }).map((value) => JSON.parse(JSON.stringify(value)) as JsonObject)

const typed = (type: string, keywords: fc.Arbitrary<JsonObject>): fc.Arbitrary<Json> =>
  keywords.map((rest) => ({ type, ...rest }))

const count = fc.integer({ min: 0, max: 4 })
const texts = typed(
  "string",
  fc.oneof(some({ minLength: count, maxLength: count, pattern: patterns }), some({ format: formats })),
)
const numberKeywords = some({
  minimum: bound,
  maximum: bound,
  exclusiveMinimum: bound,
  exclusiveMaximum: bound,
  multipleOf: fc.constantFrom(1, 2, 7, 10, 1000, 0.5, 0.01, 0.3, 12345),
})

const { schema } = fc.letrec<{ schema: Json; object: Json; array: Json; combined: Json }>((tie) => {
  const inner = tie("schema")
  const members = fc.dictionary(keys, inner, { maxKeys: 4 })
  return {
    schema: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      texts,
      typed("number", numberKeywords),
      typed("integer", numberKeywords),
      fc.constantFrom<Json>(true, {}, { type: "null" }, { type: "boolean" }, { type: ["string", "null"] }),
      fc.array(jsonValue, { minLength: 1, maxLength: 4 }).map((values) => ({ enum: values })),
      jsonValue.map((value) => ({ const: value })),
      fc.constantFrom({ $ref: "#" }, { $ref: "#/$defs/d" }),
      tie("object"),
      tie("array"),
      tie("combined"),
    ),
    object: typed(
      "object",
      some({
        properties: members,
        required: fc.uniqueArray(keys, { maxLength: 3 }),
        additionalProperties: fc.oneof(fc.boolean(), inner),
        patternProperties: fc.dictionary(patterns, inner, { maxKeys: 2 }),
        propertyNames: fc.oneof(texts, fc.constant({ enum: ["a", "b", "zz"] })),
        minProperties: fc.integer({ min: 0, max: 2 }),
        maxProperties: count,
      }),
    ),
    array: typed(
      "array",
      some({
        prefixItems: fc.array(inner, { minLength: 1, maxLength: 3 }),
        items: fc.oneof(fc.boolean(), inner),
        minItems: fc.integer({ min: 0, max: 2 }),
        maxItems: count,
      }),
    ),
    combined: fc.oneof(
      fc.array(inner, { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      fc.array(inner, { minLength: 1, maxLength: 3 }).map((oneOf) => ({ oneOf })),
      fc.array(inner, { minLength: 1, maxLength: 2 }).map((allOf) => ({ allOf })),
      fc.tuple(tie("object"), tie("object")).map(([a, b]) => ({ ...(a as object), allOf: [b] })),
      fc.tuple(inner, numberKeywords).map(([allOf, rest]) => ({ allOf: [allOf], ...rest })),
    ),
  }
})

/** A schema with a definition `d` that it may refer to, and itself. */
export const randomSchema: fc.Arbitrary<Json> = fc
  .tuple(schema, schema)
  .map(([root, definition]) =>
    typeof root === "object" && root !== null && !Array.isArray(root)
      ? { ...root, $defs: { d: definition } }
      : { allOf: [root], $defs: { d: definition } },
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as Json)

/** Of random schemas, of which most are held: every sentence of the rules is valid, and printed as it was. */
export const expectValidSentences = (of: {
  readonly schemas: number
  /** Of each schema. */
  readonly sentences: number
  readonly seed: number
}): void => {
  let held = 0
  fc.assert(
    fc.property(randomSchema, fc.nat(), (schema, seed) => {
      if (check(schema, seed, of.sentences) === "held") held++
    }),
    { numRuns: of.schemas, seed: of.seed },
  )
  expect(held).toBeGreaterThan(of.schemas / 2)
}
