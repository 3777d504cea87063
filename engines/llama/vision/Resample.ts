// Resizes pictures like the Pillow library, which the processors of all families use in training: one pass over the columns and
// one over the lines, with weights as integers of 22 fractional bits and 8-bit results, so that every pixel is the same.
import { breaths } from "./Breaths.ts"

export interface Pixels {
  readonly width: number
  readonly height: number
  /** Red, green and blue, 8 bits each, line by line. */
  readonly rgb: Uint8Array
}

type Filter = "bicubic" | "lanczos"

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))

/** Pillow's cubic has the parameter -0.5. */
const cubic = (x: number): number => {
  const at = Math.abs(x)
  if (at < 1) return (1.5 * at - 2.5) * at * at + 1
  return at < 2 ? (((at - 5) * at + 8) * at - 4) * -0.5 : 0
}

/** Radius in pixels, and the weight at a distance. */
const filters: Readonly<Record<Filter, readonly [radius: number, weight: (x: number) => number]>> = {
  bicubic: [2, cubic],
  lanczos: [3, (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0)],
}

const fractionBits = 22
const one = 2 ** fractionBits
const half = 2 ** (fractionBits - 1)

/** For each pixel of the result: the first pixel that it depends on, how many there are, and their weights. */
interface Weights {
  readonly first: Int32Array
  readonly count: Int32Array
  /** `most` for each pixel. */
  readonly values: Int32Array
  readonly most: number
}

const weightsOf = (from: number, to: number, filter: Filter): Weights => {
  const [radius, weight] = filters[filter]
  const scale = from / to
  const stretch = Math.max(1, scale)
  const support = radius * stretch
  const most = Math.ceil(support) * 2 + 1
  const weights: Weights = {
    first: new Int32Array(to),
    count: new Int32Array(to),
    values: new Int32Array(to * most),
    most,
  }
  for (let at = 0; at < to; at++) {
    const center = (at + 0.5) * scale
    const first = Math.max(0, Math.trunc(center - support + 0.5))
    const end = Math.min(from, Math.trunc(center + support + 0.5))
    const parts: Array<number> = []
    let sum = 0
    for (let x = first; x < end; x++) {
      const part = weight((x - center + 0.5) * (1 / stretch))
      parts.push(part)
      sum += part
    }
    weights.first[at] = first
    weights.count[at] = end - first
    for (const [x, part] of parts.entries()) {
      const share = (sum === 0 ? part : part / sum) * one
      weights.values[at * most + x] = Math.trunc(share + (share < 0 ? -0.5 : 0.5))
    }
  }
  return weights
}

const clipped = (sum: number): number => {
  const value = sum >> fractionBits
  return value < 0 ? 0 : value > 255 ? 255 : value
}

type Breath = () => Promise<void> | undefined

const alongLines = async ({ height, rgb, width }: Pixels, to: number, filter: Filter, breath: Breath) => {
  const { count, first, most, values } = weightsOf(width, to, filter)
  const result = new Uint8Array(to * height * 3)
  for (let line = 0; line < height; line++) {
    for (let at = 0; at < to; at++) {
      let source = (line * width + first[at]!) * 3
      let red = half
      let green = half
      let blue = half
      const end = at * most + count[at]!
      for (let weight = at * most; weight < end; weight++) {
        const value = values[weight]!
        red += rgb[source]! * value
        green += rgb[source + 1]! * value
        blue += rgb[source + 2]! * value
        source += 3
      }
      const target = (line * to + at) * 3
      result[target] = clipped(red)
      result[target + 1] = clipped(green)
      result[target + 2] = clipped(blue)
    }
    await breath()
  }
  return { width: to, height, rgb: result }
}

const acrossLines = async ({ height, rgb, width }: Pixels, to: number, filter: Filter, breath: Breath) => {
  const { count, first, most, values } = weightsOf(height, to, filter)
  const line = width * 3
  const result = new Uint8Array(line * to)
  const sums = new Int32Array(line)
  for (let at = 0; at < to; at++) {
    sums.fill(half)
    for (let part = 0; part < count[at]!; part++) {
      const value = values[at * most + part]!
      const source = (first[at]! + part) * line
      for (let x = 0; x < line; x++) sums[x] = sums[x]! + rgb[source + x]! * value
    }
    for (let x = 0; x < line; x++) result[at * line + x] = clipped(sums[x]!)
    await breath()
  }
  return { width, height: to, rgb: result }
}

/** Does not keep the shape. Gives the event loop back every few milliseconds. */
export const resized = async (
  picture: Pixels,
  width: number,
  height: number,
  filter: Filter,
): Promise<Pixels> => {
  const breath = breaths()
  const wide = picture.width === width ? picture : await alongLines(picture, width, filter, breath)
  return wide.height === height ? wide : acrossLines(wide, height, filter, breath)
}

type Colour = readonly [red: number, green: number, blue: number]

/** Scaled to fit, keeping its shape, in the middle of a picture of this size and colour. */
export const letterboxed = async (
  picture: Pixels,
  width: number,
  height: number,
  colour: Colour,
): Promise<Pixels> => {
  if (picture.width === width && picture.height === height) return picture
  // As llama.cpp computes it, with floats of 32 bits.
  const scale = Math.min(Math.fround(width / picture.width), Math.fround(height / picture.height))
  const scaled = (side: number, most: number) => Math.min(Math.ceil(Math.fround(side * scale)), most)
  const inner = await resized(
    picture,
    scaled(picture.width, width),
    scaled(picture.height, height),
    "bicubic",
  )
  const rgb = new Uint8Array(width * height * 3)
  for (let at = 0; at < rgb.length; at++) rgb[at] = colour[at % 3]!
  const left = Math.floor((width - inner.width) / 2)
  const top = Math.floor((height - inner.height) / 2)
  for (let line = 0; line < inner.height; line++) {
    const source = line * inner.width * 3
    rgb.set(inner.rgb.subarray(source, source + inner.width * 3), ((top + line) * width + left) * 3)
  }
  return { width, height, rgb }
}

/** A part of a picture. */
export const cropped = (
  picture: Pixels,
  left: number,
  top: number,
  width: number,
  height: number,
): Pixels => {
  const rgb = new Uint8Array(width * height * 3)
  for (let line = 0; line < height; line++) {
    const source = ((top + line) * picture.width + left) * 3
    rgb.set(picture.rgb.subarray(source, source + width * 3), line * width * 3)
  }
  return { width, height, rgb }
}
