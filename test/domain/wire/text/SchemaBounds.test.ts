// The bounds of a JSON Schema: which limit is named and where, and that no schema makes the check slow or deep.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { measureSchema, schemaLimits } from "#domain/wire/text/SchemaBounds.ts"
import { growthOfTime } from "../../../support/process/GrowthOfTime.ts"

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
        expect(measured).toEqual({ bytes: expect.any(Number), values: expect.any(Number) })
        expect("bytes" in measured && measured.bytes <= bytes * 3 + 8).toBe(true)
      }),
    )
  })

  it("of any depth ends without a full stack, and names where it is too deep", () => {
    expect(measureSchema(nested(schemaLimits.levels - 1))).toHaveProperty("bytes")
    const problem = measureSchema(nested(500_000))
    expect(problem).toMatchObject({ detail: "is nested more than 64 levels deep" })
    expect(problem).toMatchObject({ path: expect.stringMatching(/^items(\.items)+/) })
  })

  it("counts its values, without a look at what is too much", () => {
    expect(measureSchema({ enum: [1, "a", { b: null }], type: "string" })).toMatchObject({ values: 7 })
    const list = Array.from({ length: 100_000 }, () => 0)
    const many = { detail: "all schemas together must have at most 16000 values" }
    expect(measureSchema({ enum: list })).toMatchObject(many)
    expect(measureSchema({ enum: [1, 2, 3] }, 4)).toMatchObject(many)
    expect(measureSchema({ enum: [1, 2, 3] }, 5)).toMatchObject({ values: 5 })
    // Values are counted before they are visited, so a request of many costs no more than one of few.
    const few = { enum: list.slice(0, 15_000) }
    expect(
      growthOfTime(
        () => measureSchema(few),
        () => measureSchema({ enum: list }),
      ),
    ).toBeLessThan(4)
  })

  it("counts subschemas, and neither names of properties nor data", () => {
    const names = (count: number, value: unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, value]))
    expect(measureSchema({ properties: names(schemaLimits.subschemas - 1, {}) })).toHaveProperty("bytes")
    expect(measureSchema({ properties: names(schemaLimits.subschemas, {}) })).toMatchObject({
      detail: "must have at most 5000 subschemas",
    })
    expect(measureSchema({ enum: Array.from({ length: 9_000 }, () => ({})) })).toHaveProperty("bytes")
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
      { enum: Array.from({ length: 10_000 }, () => "x".repeat(40)) },
    ]) {
      expect(measureSchema(schema)).toEqual({ path: "", detail: "must be at most 262144 bytes of JSON" })
    }
  })
})
