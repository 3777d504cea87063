// The thread for large bodies gives the same result as parsing on the event loop, and each caller its own.
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { parseLarge } from "#api/http/LargeJson.ts"
import { parseJson } from "#domain/wire/JsonText.ts"

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

it("gives values of many keys and items whole, several at a time", async () => {
  const values = [
    Object.fromEntries(Array.from({ length: 8_000 }, (_, at) => [`k${at}`, [at, at]])),
    Array.from({ length: 20_000 }, (_, at) => ({ a: [at] })),
    { a: { b: Array.from({ length: 60_000 }, () => "x") }, c: 1 },
  ]
  const texts = [...values, ...values].map((value) => JSON.stringify(value))
  const found = await Promise.all(texts.map(large))
  expect(found.map((parsed) => JSON.stringify("value" in parsed && parsed.value))).toEqual(texts)
})

it.each([
  ["not JSON", "{", "is not valid JSON"],
  ["more closed than opened", `]}${"[".repeat(100)}`, "is not valid JSON"],
  ["closed before it is opened", `"messages":"once"}],"logit_bias":{}}`, "is not valid JSON"],
  ["too many values", `[${"0,".repeat(100_001)}0]`, "has more than 100000 values"],
  [
    "too many keys",
    JSON.stringify([{ a: Object.fromEntries(Array.from({ length: 8_193 }, (_, at) => [`k${at}`, at])) }]),
    "has an object of more than 8192 keys",
  ],
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
  expect([b, e]).toEqual([problem, problem])
  expect(d).toEqual({ problem: `${problem.problem}, in a.a.a.a` })
  for (const answer of [a, c, f]) expect(answer).toEqual({ value: JSON.parse(beside) })
  expect(await large(nested(128))).toEqual({ value: JSON.parse(nested(128)) })
})

it("counts lists and objects together", () => {
  const mixed = (lists: number, objects: number) =>
    `${"[".repeat(lists)}${'{"a":'.repeat(objects)}1${"}".repeat(objects)}${"]".repeat(lists)}`
  expect(parseJson(mixed(64, 64))).toEqual({ value: JSON.parse(mixed(64, 64)) })
  for (const [lists, objects] of [
    [65, 64],
    [64, 65],
    [0, 129],
    [129, 0],
  ] as const)
    expect(parseJson(mixed(lists, objects))).toMatchObject({
      problem: expect.stringContaining("levels deep"),
    })
})

it("names where it nests too deep", () => {
  const tool = (schema: string) =>
    `{"a":[1,{"b":"x,]"}],"tools":[{},{"function":{"parameters":{"items":${schema}}}}]}`
  expect(parseJson(tool(nested(200)))).toEqual({
    problem: "is nested more than 128 levels deep, in tools[1].function.parameters",
  })
})

it("reads brackets in any order, and names what is wrong with them", () => {
  const brackets = fc.string({ unit: fc.constantFrom("[", "{", "]", "}", ",", '"', ":", "a"), maxLength: 60 })
  fc.assert(
    fc.property(brackets, fc.nat(200), (text, levels) => {
      const parsed = parseJson(text + "[".repeat(levels))
      expect("value" in parsed || parsed.problem !== "").toBe(true)
    }),
  )
  expect(parseJson("][")).toEqual({ problem: "is not valid JSON" })
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

const picture = (seed: number) => Buffer.alloc(400_000, `picture ${seed}`)

it("gives the pictures of a value of many pieces as bytes, and only where they are asked for", async () => {
  const messages = Array.from({ length: 3_000 }, (_, at) => ({
    role: "user",
    content: [
      { type: "text", text: `${at}` },
      at % 1_000 === 999
        ? {
            type: "image_url",
            image_url: { url: `data:image/png;base64,${picture(at).toString("base64")}` },
          }
        : { type: "image_url", image_url: { url: "https://example.org/a.png" } },
    ],
  }))
  const body = { messages, after: Array.from({ length: 5_000 }, (_, at) => `${at}`) }
  const text = JSON.stringify(body)
  const parsed = await Effect.runPromise(parseLarge(bytesOf(text), true))
  for (const at of [999, 1_999, 2_999])
    Object.assign(body.messages[at]!.content[1]!, { image_url: { url: new Uint8Array(picture(at)) } })
  expect(parsed).toEqual({ value: body })
  expect(await large(text)).toEqual({ value: JSON.parse(text) })
})

it("drops a value of many pieces when its client has disconnected", async () => {
  const text = JSON.stringify(Array.from({ length: 30_000 }, (_, at) => ({ [`k${at}`]: at })))
  const left = Array.from({ length: 3 }, () => Effect.runFork(parseLarge(bytesOf(text))))
  const after = [large('{"a":1}'), large(text)]
  for (const fiber of left) await Effect.runPromise(Fiber.interrupt(fiber))
  expect(await after[0]).toEqual({ value: { a: 1 } })
  expect(await after[1]).toEqual({ value: JSON.parse(text) })
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
