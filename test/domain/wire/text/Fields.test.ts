// A field of the wrong type is refused in words, also where null is allowed.
import { Result, Schema } from "effect"
import { expect, it } from "vitest"
import { finite, flag, int, optional, range, text, textUpTo } from "#domain/wire/text/Fields.ts"

const Body = Schema.Struct({
  number: optional(finite),
  ranged: optional(finite.check(range(0, 2))),
  count: optional(int),
  words: optional(text),
  short: optional(textUpTo(3)),
  isOn: optional(flag),
})
const decode = Schema.decodeUnknownResult(Body)

it.each([
  ["number", "1", "must be a number"],
  ["ranged", "1", "must be between 0 and 2"],
  ["ranged", 3, "must be between 0 and 2"],
  ["count", "1", "must be an integer"],
  ["count", 1.5, "must be an integer"],
  ["words", 1, "must be a text"],
  ["short", 1, "must be at most 3 characters"],
  ["short", "four", "must be at most 3 characters"],
  ["isOn", "true", "must be true or false"],
])("%s: %j %s", (field, value, words) => {
  const refused = decode({ [field]: value })
  expect(Result.isFailure(refused) && refused.failure.message.split("\n")[0]).toBe(words)
  expect(Result.isSuccess(decode({ [field]: null }))).toBe(true)
})
