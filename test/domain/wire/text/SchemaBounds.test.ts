// The bounds of a JSON Schema: which limit is named and where, and that no schema makes the check slow or deep.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { measureSchema, schemaLimits } from "#domain/wire/text/SchemaBounds.ts"

const nested = (levels: number): unknown => {
  let schema: unknown = {}
  for (let level = 0; level < levels; level++) schema = { items: schema }
  return schema
}

describe("a schema", () => {
  it("is measured in about the bytes of its JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (schema) => {
        const measured = measureSchema(schema)
        const bytes = Buffer.byteLength(JSON.stringify(schema))
        // Escapes are not counted, brackets and commas generously.
        expect(typeof measured === "number" && measured <= bytes * 3 + 8).toBe(true)
      }),
    )
  })

  it("of any depth ends without a full stack, and names where it is too deep", () => {
    expect(measureSchema(nested(schemaLimits.levels - 1))).toBeTypeOf("number")
    const problem = measureSchema(nested(500_000))
    expect(problem).toMatchObject({ detail: "is nested more than 64 levels deep" })
    expect(problem).toMatchObject({ path: expect.stringMatching(/^items(\.items)+/) })
  })

  it("counts subschemas, and neither names of properties nor data", () => {
    const names = (count: number, value: unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, value]))
    expect(measureSchema({ properties: names(schemaLimits.subschemas - 1, {}) })).toBeTypeOf("number")
    expect(measureSchema({ properties: names(schemaLimits.subschemas, {}) })).toMatchObject({
      detail: "must have at most 5000 subschemas",
    })
    expect(measureSchema({ enum: Array.from({ length: 9_000 }, () => ({})) })).toBeTypeOf("number")
    // A property that has the name of a keyword is a schema like any other.
    expect(
      measureSchema({ properties: { enum: { anyOf: Array.from({ length: 5_000 }, () => ({})) } } }),
    ).toMatchObject({
      detail: "must have at most 5000 subschemas",
    })
  })

  it("of too many bytes is refused as soon as they are counted", () => {
    for (const schema of [
      { description: "é".repeat(200_000) },
      { enum: Array.from({ length: 200_000 }, () => 1) },
    ]) {
      expect(measureSchema(schema)).toEqual({ path: "", detail: "must be at most 262144 bytes of JSON" })
    }
  })
})
