// The thread for large bodies gives what the event loop would have given, to each what is its own.
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { parseJson } from "#api/JsonText.ts"
import { parseLarge } from "#api/LargeJson.ts"

const bytesOf = (text: string) => new TextEncoder().encode(text)
const large = (text: string) => Effect.runPromise(parseLarge(bytesOf(text)))

it("gives each of many bodies its own value", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 12 }), async (values) => {
      const texts = values.map((value) => JSON.stringify(value))
      expect(await Promise.all(texts.map(large))).toEqual(texts.map(parseJson))
    }),
    { numRuns: 60 },
  )
})

it.each([
  ["not JSON", "{", "is not valid JSON"],
  ["too many values", `[${"0,".repeat(100_001)}0]`, "has more than 100000 values"],
  ["nothing", "", "is not valid JSON"],
])("says what is wrong: %s", async (_, text, problem) => {
  expect(await large(text)).toEqual({ problem })
})

it("reads what is no UTF-8, and a byte order mark, as the event loop does", async () => {
  const bytes = Buffer.concat([
    Buffer.from([0xef, 0xbb, 0xbf]),
    bytesOf('{"a":"'),
    Buffer.from([0xff, 0xc3]),
    bytesOf('"}'),
  ])
  expect(await Effect.runPromise(parseLarge(bytes))).toEqual(parseJson(new TextDecoder().decode(bytes)))
})

it("serves others when somebody has left, and leaves the body as it was", async () => {
  const body = bytesOf(JSON.stringify({ text: "é".repeat(1_000_000) }))
  const left = Effect.runFork(parseLarge(body))
  const others = [large('{"a":1}'), Effect.runPromise(parseLarge(body))]
  await Effect.runPromise(Fiber.interrupt(left))
  expect(await others[0]).toEqual({ value: { a: 1 } })
  expect(await others[1]).toEqual({ value: { text: "é".repeat(1_000_000) } })
  expect(body.length).toBeGreaterThan(2_000_000)
})
