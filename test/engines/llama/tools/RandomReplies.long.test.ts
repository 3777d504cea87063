// As RandomReplies.test.ts, with 10,000 calls and more.
import { expect, it } from "@effect/vitest"
import { checkRandomReplies } from "./RandomReplies.ts"

it("10,000 random calls", () => {
  expect(checkRandomReplies(250)).toBeGreaterThan(10_000)
})
