import { describe, expect, it } from "vitest"
import type { Json } from "../../Json.ts"
import { schemaRules } from "../../schema/SchemaRules.ts"
import { check } from "./Check.ts"
import { isSentence } from "./Recognizer.ts"

const schemas: Readonly<Record<string, Json>> = {
  "an object": {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer", minimum: 0, maximum: 130 } },
    required: ["name"],
  },
  "listed values": {
    type: "array",
    items: { enum: ["a", 1, null, { x: [1, 2] }] },
    minItems: 2,
    maxItems: 4,
  },
  "a pattern with a length": { type: "string", pattern: "^[a-z]{2,5}\\d$", maxLength: 5 },
  "a length": { type: "string", minLength: 3, maxLength: 5 },
  "a decimal range": { type: "number", minimum: -1.5, exclusiveMaximum: 2.25 },
  quarters: { type: "number", multipleOf: 0.25, minimum: 0.3 },
  "a recursive schema": {
    $defs: {
      node: {
        type: "object",
        properties: {
          left: { $ref: "#/$defs/node" },
          right: { anyOf: [{ type: "null" }, { $ref: "#/$defs/node" }] },
        },
        required: ["right"],
      },
    },
    $ref: "#/$defs/node",
  },
  "further members": {
    type: "object",
    additionalProperties: { type: "boolean" },
    minProperties: 1,
    maxProperties: 3,
  },
  "all of": {
    allOf: [
      { properties: { a: { minimum: 2 } } },
      { properties: { a: { type: "integer", maximum: 4 } }, required: ["a"] },
    ],
  },
  "a tuple": {
    type: "array",
    prefixItems: [{ type: "string" }, { type: "boolean" }],
    items: false,
    minItems: 1,
  },
}

describe("schemaRules", () => {
  for (const [name, schema] of Object.entries(schemas)) {
    it(`only allows valid JSON: ${name}`, () => {
      expect(check(schema, 1, 30)).toBe("held")
    })
  }
})

const strict = { strict: true, notation: "compact", prefix: "s" } as const

describe("sentences of a schema", () => {
  const table: ReadonlyArray<readonly [schema: Json, yes: ReadonlyArray<string>, no: ReadonlyArray<string>]> =
    [
      [
        { properties: { a: { type: "integer" }, b: { type: "string" } }, required: ["b"] },
        ['{"a":1,"b":""}', '{"b":"x"}'],
        ['{"b":"x","a":1}', '{"a":1}', '{"b":"x","c":1}', '{ "b":"x"}', '{"b":"x",}', '"text"'],
      ],
      [
        { properties: { a: { type: "integer" } }, additionalProperties: { type: "null" } },
        ["{}", '{"a":1}', '{"a":1,"z":null,"y":null}', '{"z":null}'],
        ['{"z":1}', '{"a":null}', '{"\\u0061":null}', '{"z":null,"a":1}'],
      ],
      [{ type: "object" }, ["{}", '{"k":[1,{"a":null}]}'], ["[]"]],
      [{ type: "object", maxProperties: 1 }, ["{}", '{"k":1}'], ['{"k":1,"l":2}']],
      [{ enum: ["b", "aa", 3, null], type: "string" }, ['"b"', '"aa"'], ["3", "null", '"a"']],
      [{ enum: ["b", "aa", "ccc"], not: { maxLength: 1 }, minLength: 2 }, [], []],
      [{ const: { b: [1, 2], a: "x" } }, ['{"b":[1,2],"a":"x"}'], ['{"a":"x","b":[1,2]}']],
      [{ type: ["integer", "null"], minimum: 5 }, ["5", "null", "123"], ["4", "-5", "5.5"]],
      [
        { type: "integer", exclusiveMinimum: -3, maximum: 12 },
        ["-2", "0", "9", "12"],
        ["-3", "13", "-0", "007"],
      ],
      [{ type: "string", maxLength: 2 }, ['""', '"😀😀"', '"\\n\\""'], ['"abc"', '"\\u0041"', '"\\/"']],
      [{ type: "string", pattern: "^[^x]*$" }, ['"a"', '"\\"\\\\"'], ['"x"', '"ax"', '"\\u0078"']],
      [{ $ref: "#/$defs/a~1b%25", $defs: { "a/b%": { type: "null" } } }, ["null"], ["1"]],
      [{ $ref: "#word", $defs: { w: { $anchor: "word", type: "null" } } }, ["null"], ["1"]],
      [{ $ref: "#/$defs/n", minimum: 3, $defs: { n: { type: "integer" } } }, ["3"], ["2", "3.5"]],
      [
        { prefixItems: [{ type: "null" }, { type: "boolean" }] },
        ["[]", "[null]", "[null,true]"],
        ["[true]", "[null,true,1]"],
      ],
      [
        { items: { type: "integer" }, minItems: 1, maxItems: 2 },
        ["[1]", "[1,2]"],
        ["[]", "[1,2,3]", "[1.5]"],
      ],
      [
        { anyOf: [{ type: "object", properties: { a: { const: 1 } }, required: ["a"] }, { type: "null" }] },
        ["null", '{"a":1}'],
        ["{}", '{"a":2}'],
      ],
      [
        { patternProperties: { "^n_": { type: "integer" } }, properties: { n_a: { minimum: 5 } } },
        ['{"n_a":5}', '{"n_a":7,"n_b":0}', '{"n_x":1}'],
        ['{"n_a":4}', '{"n_b":"x"}', '{"x":1}', '{"n_a":5.5}'],
      ],
      [
        { propertyNames: { enum: ["x", "y"] }, additionalProperties: { type: "integer" }, minProperties: 1 },
        ['{"x":1}', '{"y":1}', '{"x":1,"y":2}'],
        ["{}", '{"z":1}', '{"x":null}'],
      ],
      [{ type: "object", properties: { a: false, b: { type: "null" } } }, ["{}", '{"b":null}'], ['{"a":1}']],
      [
        { type: "object", properties: { next: { $ref: "#" } } },
        ["{}", '{"next":{"next":{}}}'],
        ['{"next":null}', '{"next":{"next":1}}'],
      ],
      [
        {
          type: "object",
          properties: { __proto__: { type: "null" }, constructor: { type: "null" } },
          required: ["toString"],
        },
        ['{"constructor":null,"toString":1}'],
        ['{"constructor":null}'],
      ],
      [{ type: "string", format: "date", minLength: 10, maxLength: 10 }, ['"2024-02-29"'], ['"2023-02-29"']],
      [
        { type: "string", format: "email", maxLength: 64 },
        ['"a.b@example.org"'],
        ['"a@b"', '"@example.org"'],
      ],
    ]
  for (const [schema, yes, no] of table.filter(([, some]) => some.length > 0)) {
    it(JSON.stringify(schema).slice(0, 100), () => {
      const made = schemaRules(schema, strict)
      if ("problem" in made) throw new Error(`${made.problem.path}: ${made.problem.detail}`)
      for (const text of yes) expect(isSentence(made.rules, text), text).toBe(true)
      for (const text of no) expect(isSentence(made.rules, text), text).toBe(false)
    })
  }
})
