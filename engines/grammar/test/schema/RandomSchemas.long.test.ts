// As RandomSchemas.test.ts, of more schemas.
import { it } from "vitest"
import { expectValidSentences } from "./RandomSchemas.ts"

it("every sentence of 4,000 random schemas' rules is valid", () => {
  expectValidSentences({ schemas: 4_000, sentences: 6, seed: 22 })
})
