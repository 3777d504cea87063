import * as fc from "fast-check"
import { expect, it } from "vitest"
import { check } from "./Check.ts"
import { expectValidSentences, randomSchema } from "./RandomSchemas.ts"

it("every sentence of a random schema's rules is valid, and printed as it was", () => {
  expectValidSentences({ schemas: 80, sentences: 4, seed: 20 })
})

it("rules that are not strict stay valid where strict rules hold the schema", () => {
  fc.assert(
    fc.property(randomSchema, fc.nat(), (schema, seed) => {
      if (check(schema, seed, 1) === "held") expect(check(schema, seed, 3, false)).toBe("held")
    }),
    { numRuns: 40, seed: 21 },
  )
})
