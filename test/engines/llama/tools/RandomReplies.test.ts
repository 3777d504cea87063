// Rules, schemas, matcher and parsers together.
import { expect, it } from "@effect/vitest"
import { checkRandomReplies } from "./RandomReplies.ts"

it("random replies of every family: calls that parse, validate and are written the same again", () => {
  expect(checkRandomReplies(3)).toBeGreaterThan(100)
})
