// A vector as JSON text: a list of numbers, or base64 of its 32-bit floats. Pure.
import type { EmbedRequest } from "../../protocol/Engine.ts"

/** The first values of the vector, all of them if `dimensions` is absent, scaled to length 1. Zeros stay zeros. */
export const unitVector = (vector: Float32Array, dimensions = vector.length): Float32Array => {
  const kept = vector.subarray(0, dimensions)
  const length = Math.sqrt(kept.reduce((sum, value) => sum + value * value, 0))
  return length === 0 ? kept.slice() : kept.map((value) => value / length)
}

/** As many significant digits as tell any two 32-bit floats apart. Without them a float has up to 20 characters, not 12. */
const digits = 9

/** Base64 is little-endian, as all machines that edgewise runs on are. */
export const vectorText = (vector: Float32Array, { dimensions, format }: EmbedRequest): string => {
  const unit = unitVector(vector, dimensions)
  if (format === "base64")
    return `"${Buffer.from(unit.buffer, unit.byteOffset, unit.byteLength).toString("base64")}"`
  return `[${Array.from(unit, (value) => Number(value.toPrecision(digits))).join(",")}]`
}
