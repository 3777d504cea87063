import { describe, expect, it } from "vitest"
import type { Json } from "../../Json.ts"
import { schemaRules } from "../../schema/SchemaRules.ts"

const nested = (levels: number, wrap: (schema: Json) => Json): Json => {
  let schema: Json = { type: "null" }
  for (let i = 0; i < levels; i++) schema = wrap(schema)
  return schema
}
const many = <A>(count: number, make: (i: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, i) => make(i))
const keyed = (count: number, make: (i: number) => Json): Json =>
  Object.fromEntries(many(count, (i) => [`k${i}`, make(i)]))

const solve = (schema: Json) => schemaRules(schema, { strict: true, notation: "compact", prefix: "s" })

describe("schemas that would need too much work", () => {
  const refused: Readonly<Record<string, readonly [schema: Json, detail: RegExp]>> = {
    "10,000 levels": [nested(10_000, (items) => ({ items })), /more than 128 levels/],
    "doubled alternatives on 30 levels": [
      nested(30, (part) => ({ anyOf: [part, part] })),
      /limit|combinations/,
    ],
    "2 ** 30 combinations": [
      {
        allOf: many(30, (i) => ({
          anyOf: [{ properties: { [`a${i}`]: { const: 1 } } }, { properties: { [`b${i}`]: { const: 1 } } }],
        })),
      },
      /more than 1000 combinations/,
    ],
    "references that double": [
      {
        $defs: Object.fromEntries(
          many(60, (i) => [`d${i}`, { anyOf: many(2, () => ({ $ref: `#/$defs/d${Math.min(59, i + 1)}` })) }]),
        ),
        $ref: "#/$defs/d0",
      },
      /without end|limit|combinations/,
    ],
    "counted members of 4,900": [
      { type: "object", properties: keyed(4_900, () => ({ type: "string" })), minProperties: 200 },
      /too complex/,
    ],
    "patterns whose product is large": [
      { allOf: [7, 11, 13, 17].map((n) => ({ type: "string", pattern: `^(a{${n}})*$` })) },
      /more than 5000 states/,
    ],
  }
  for (const [name, [schema, detail]] of Object.entries(refused)) {
    it(`refuses ${name}`, () => {
      expect(solve(schema)).toEqual({
        problem: { path: expect.any(String), detail: expect.stringMatching(detail) },
      })
    })
  }

  const held: Readonly<Record<string, Json>> = {
    "60 levels": nested(60, (a) => ({ type: "object", properties: { a }, required: ["a"] })),
    "2,000 properties": { type: "object", properties: keyed(2_000, () => ({ type: "string" })) },
    "5,000 values": { enum: many(5_000, (i) => `value ${i}`) },
    "100 alternatives told apart by a constant": {
      oneOf: many(100, (i) => ({ type: "object", properties: { kind: { const: i } }, required: ["kind"] })),
    },
    "a pattern that makes other engines slow": { type: "string", pattern: "^(([a-z])+.)+[A-Z]([a-z])+$" },
    "a long text under a pattern": { type: "string", pattern: "^(\\w+\\s?)*$", maxLength: 100_000 },
  }
  for (const [name, schema] of Object.entries(held)) {
    it(`holds ${name}`, () => {
      expect(solve(schema)).toHaveProperty("rules")
    })
  }

  it("gives the same rules every time", () => {
    const schema = { type: "object", properties: keyed(20, (i) => ({ type: "string", maxLength: i })) }
    expect(solve(schema)).toEqual(solve(schema))
  })
})
