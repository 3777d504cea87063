// The writer of large JSON gives what JSON.stringify gives, wherever it is interrupted.
import fc from "fast-check"
import { expect, it } from "vitest"
import { isLarge, JsonWriter } from "#domain/json/JsonWriter.ts"

const inParts = (value: unknown): { readonly text: string; readonly parts: number } => {
  const writer = new JsonWriter(value)
  for (let parts = 1; ; parts++) {
    const made = writer.write(() => true)
    if (made !== undefined) return { text: Buffer.concat(made).toString(), parts }
  }
}

it("gives what JSON.stringify gives of any value", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      expect(inParts(value).text).toBe(JSON.stringify(value))
    }),
  )
})

it("leaves out what is undefined, and writes null for it in a list", () => {
  const value = { a: undefined, b: [undefined, 1], c: { d: undefined }, e: Number.NaN }
  expect(inParts(value).text).toBe(JSON.stringify(value))
})

it("gives long texts whole, with pairs of surrogates at every place, in many parts", () => {
  for (const unit of ["😀", "a😀", "\ud83d", "\n", '"é'])
    for (const offset of ["", "x", "xy"]) {
      const text = offset + unit.repeat(60_000)
      const { parts, text: written } = inParts({ text, after: [text] })
      expect(written).toBe(JSON.stringify({ text, after: [text] }))
      expect(parts).toBeGreaterThan(8)
    }
})

it("knows what is large without looking at all of it", () => {
  expect(isLarge({ a: "x".repeat(90), b: [1, 2] }, 100)).toBe(false)
  expect(isLarge({ a: "x".repeat(90), b: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }, 100)).toBe(true)
  let seen = 0
  const list = new Proxy(
    Array.from({ length: 10_000 }, () => "text of some length"),
    {
      get: (of, key) => {
        seen++
        return Reflect.get(of, key) as unknown
      },
    },
  )
  expect(isLarge(list, 100)).toBe(true)
  expect(seen).toBeLessThan(50)
})
