// The thread for large bodies gives the same result as parsing on the event loop, and each caller its own.
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { parseJson } from "#api/http/JsonText.ts"
import { parseLarge } from "#api/http/LargeJson.ts"

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

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels)

it("refuses values that nest too deep, also inside others, and answers the bodies beside them", async () => {
  const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
  const beside = JSON.stringify({ text: "x".repeat(3_000_000) })
  const problem = { problem: "is nested more than 128 levels deep" }
  const bodies = [beside, nested(129), beside, objects(2_000), `[1,"]]",${nested(200_000)}]`, beside]
  const [a, b, c, d, e, f] = await Promise.all(bodies.map(large))
  expect([b, d, e]).toEqual([problem, problem, problem])
  for (const answer of [a, c, f]) expect(answer).toEqual({ value: JSON.parse(beside) })
  expect(await large(nested(128))).toEqual({ value: JSON.parse(nested(128)) })
})

it("does not take brackets in texts for nesting", () => {
  const texts = fc.string({ unit: fc.constantFrom("[", "{", "]", "}", '"', "\\", "a"), maxLength: 400 })
  fc.assert(
    fc.property(fc.dictionary(texts, fc.array(texts)), (value) => {
      expect(parseJson(JSON.stringify(value))).toEqual({ value: JSON.parse(JSON.stringify(value)) })
    }),
  )
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

it("serves others when a client has disconnected, and leaves the body as it was", async () => {
  const body = bytesOf(JSON.stringify({ text: "é".repeat(1_000_000) }))
  const left = Effect.runFork(parseLarge(body))
  const others = [large('{"a":1}'), Effect.runPromise(parseLarge(body))]
  await Effect.runPromise(Fiber.interrupt(left))
  expect(await others[0]).toEqual({ value: { a: 1 } })
  expect(await others[1]).toEqual({ value: { text: "é".repeat(1_000_000) } })
  expect(body.length).toBeGreaterThan(2_000_000)
})
