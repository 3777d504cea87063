import * as fc from "fast-check"
import { expect, it } from "vitest"
import { check } from "./Check.ts"
import { randomSchema } from "./RandomSchemas.ts"

it("every sentence of 4,000 random schemas' rules is valid", { timeout: 600_000 }, () => {
  let held = 0
  fc.assert(
    fc.property(randomSchema, fc.nat(), (schema, seed) => {
      if (check(schema, seed, 6) === "held") held++
    }),
    { numRuns: 4_000, seed: 22 },
  )
  expect(held).toBeGreaterThan(2_000)
})
