// The texts of vectors: base64 and numbers hold the same floats, and kept dimensions have length 1.
import fc from "fast-check"
import { expect, it } from "vitest"
import { unitVector, vectorText } from "#engines/shared/text/VectorText.ts"

const vectors = fc
  .array(fc.float({ noNaN: true, noDefaultInfinity: true, min: -100, max: 100 }), {
    minLength: 2,
    maxLength: 50,
  })
  .filter((values) => Math.hypot(...values) > 1e-3)

const parsed = (text: string) => {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value)) return Float32Array.from(value as ReadonlyArray<number>)
  return new Float32Array(new Uint8Array(Buffer.from(String(value), "base64")).buffer)
}

it("base64 and numbers are the same floats, those of the unit vector", () => {
  fc.assert(
    fc.property(vectors, (values) => {
      const vector = Float32Array.from(values)
      const request = { inputs: ["a"] }
      const unit = unitVector(vector)
      expect(parsed(vectorText(vector, { ...request, format: "base64" }))).toEqual(unit)
      // A list of numbers has no negative zero.
      const numbers = parsed(vectorText(vector, { ...request, format: "float" }))
      expect(numbers.map((value) => value + 0)).toEqual(unit.map((value) => value + 0))
      expect(Math.hypot(...unit)).toBeCloseTo(1, 5)
    }),
  )
})

it("kept dimensions are the first values, scaled to length 1", () => {
  fc.assert(
    fc.property(vectors, fc.nat(), (values, at) => {
      const vector = Float32Array.from(values)
      const dimensions = 1 + (at % values.length)
      const kept = unitVector(vector, dimensions)
      const length = Math.hypot(...vector.subarray(0, dimensions))
      expect(kept.length).toBe(dimensions)
      for (const [index, value] of kept.entries())
        expect(value).toBeCloseTo(length === 0 ? 0 : vector[index]! / length, 5)
    }),
  )
})
