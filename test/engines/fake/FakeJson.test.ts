// The fake engine's values for schemas: of any JSON some value, and of the schemas that it knows a valid one.
import { expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import fc from "fast-check"
import type { Json, JsonObject } from "#domain/wire/Json.ts"
import { smallValue } from "#engines/fake/FakeJson.ts"

it("are made of any JSON, however senseless as a schema", () => {
  const keyword = fc.constantFrom(
    "type",
    "enum",
    "anyOf",
    "items",
    "minItems",
    "minLength",
    "properties",
    "required",
    "$ref",
  )
  const schema = fc.letrec<{ any: Json }>((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<Json>("object", "array", "string", "integer", "#/items", -1, 1.5, 1e9, null, true),
      fc.array(tie("any"), { maxLength: 3 }),
      fc.dictionary(keyword, tie("any"), { maxKeys: 4 }),
    ),
  })).any
  fc.assert(
    fc.property(schema, (value) => {
      const root =
        typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
      expect(JSON.stringify(smallValue(value, root))).toBeTypeOf("string")
    }),
  )
})

it("are valid for plain schemas", () => {
  const schema: JsonObject = {
    type: "object",
    properties: {
      name: { type: "string", minLength: 3 },
      kind: { enum: ["a", "b"] },
      size: { type: "integer", minimum: 4 },
      tags: { type: "array", items: { $ref: "#/$defs/tag" }, minItems: 2 },
      either: { anyOf: [{ type: "boolean" }, { type: "null" }] },
    },
    required: ["name", "kind", "size", "tags", "either"],
    $defs: { tag: { const: "t" } },
  }
  expect(new Ajv2020().validate(schema, smallValue(schema, schema))).toBe(true)
})
