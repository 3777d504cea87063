import { describe, expect, it } from "vitest"
import type { Json } from "../../Json.ts"
import { schemaRules } from "../../schema/SchemaRules.ts"
import { check } from "./Check.ts"

const strict = { strict: true, notation: "compact", prefix: "s" } as const

const problemOf = (schema: Json, open = false) => {
  const made = schemaRules(schema, { ...strict, strict: !open })
  return "problem" in made ? made.problem : undefined
}

describe("problems", () => {
  const both: ReadonlyArray<readonly [schema: Json, path: string, detail: RegExp]> = [
    [false, "", /no value/],
    [
      { properties: { age: { minimum: 3, maximum: 2 } } },
      "properties.age.minimum",
      /minimum 3 and maximum 2/,
    ],
    [{ items: { enum: [] } }, "items.enum", /not be empty/],
    [{ required: ["a"], additionalProperties: false }, "required", /"a" is required but not allowed/],
    [{ type: "text" }, "type", /one or more of/],
    [{ minLength: -1 }, "minLength", /at least 0/],
    [{ minItems: 2e6 }, "minItems", /at most 1000000/],
    [{ properties: { x: 5 } }, "properties", /values are schemas/],
    [{ $ref: "#/$defs/none" }, "$ref", /not a schema of this document/],
    [{ $ref: "other.json" }, "$ref", /not a schema of this document/],
    [{ $ref: "#" }, "", /without end/],
    [{ anyOf: [{ $ref: "#" }] }, "", /without end/],
    [{ required: ["n"], properties: { n: { $ref: "#" } } }, "properties.n", /without end/],
    [{ allOf: [{ type: "string" }, { type: "null" }] }, "", /no value/],
    [
      { allOf: [{ required: ["a"] }, { additionalProperties: false }] },
      "",
      /"a" is required but not allowed/,
    ],
    [{ type: "string", pattern: "(" }, "pattern", /not a regular expression/],
    [{ anyOf: [] }, "anyOf", /at least one/],
    [{ type: "string", pattern: "^a$", maxLength: 0 }, "", /no value/],
  ]
  for (const [schema, path, detail] of both) {
    it(`in both modes: ${JSON.stringify(schema)}`, () => {
      for (const open of [false, true]) {
        expect(problemOf(schema, open)).toEqual({ path, detail: expect.stringMatching(detail) })
      }
    })
  }

  const onlyStrict: ReadonlyArray<readonly [schema: Json, path: string]> = [
    [{ items: { type: "array", uniqueItems: true } }, "items.uniqueItems"],
    [{ type: "object", properties: { a: { not: { type: "null" } } } }, "properties.a.not"],
    [{ type: "array", contains: { type: "null" } }, "contains"],
    [{ if: {}, else: { type: "null" } }, "if"],
    [{ type: "object", dependentRequired: { a: ["b"] } }, "dependentRequired"],
    [{ type: "object", unevaluatedProperties: false }, "unevaluatedProperties"],
    [{ type: "string", madeUp: 1 }, "madeUp"],
    [{ type: "string", nullable: true }, "nullable"],
    [{ type: "string", format: "color" }, "format"],
    [{ type: "string", pattern: "b(?!a)" }, "pattern"],
    [{ oneOf: [{ type: "string" }, { type: "string", maxLength: 3 }] }, "oneOf.1"],
    [{ type: "object", additionalProperties: true, minProperties: 2 }, "minProperties"],
  ]
  for (const [schema, path] of onlyStrict) {
    it(`only when strict: ${JSON.stringify(schema)}`, () => {
      expect(problemOf(schema)?.path).toBe(path)
      expect(problemOf(schema, true)).toBeUndefined()
    })
  }

  it("ignores annotations and keywords that exclude nothing", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "https://example.org/s",
      $comment: "a comment",
      title: "t",
      description: "d",
      default: 1,
      examples: [1],
      deprecated: false,
      readOnly: true,
      "x-order": 3,
      uniqueItems: false,
      unevaluatedProperties: true,
      type: "integer",
    }
    expect(problemOf(schema)).toBeUndefined()
  })

  const disjoint: ReadonlyArray<ReadonlyArray<Json>> = [
    [{ type: "string" }, { type: "integer" }],
    [{ const: 1 }, { const: 2 }, { enum: [3, 4] }],
    [
      { type: "string", pattern: "^a" },
      { type: "string", pattern: "^b" },
    ],
    [
      { type: "number", maximum: 1 },
      { type: "number", exclusiveMinimum: 1 },
    ],
    [
      { type: "object", properties: { kind: { const: "a" } }, required: ["kind"] },
      { type: "object", properties: { kind: { const: "b" }, x: {} }, required: ["kind"] },
    ],
    [
      { type: "object", properties: { a: {} }, required: ["a"], additionalProperties: false },
      { type: "object", properties: { b: {} }, required: ["b"], additionalProperties: false },
    ],
  ]
  for (const oneOf of disjoint) {
    it(`oneOf of alternatives that exclude each other: ${JSON.stringify(oneOf).slice(0, 80)}`, () => {
      expect(check({ oneOf }, 3, 10)).toBe("held")
    })
  }
})
