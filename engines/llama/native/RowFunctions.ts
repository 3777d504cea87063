// The functions of rows.wat over values in the memory of a WebAssembly module, four at a time: `rows.wasm` is what wabt makes
// of the text (the test compares). And what Rows and Candidates share: sums, and the draw from weights.
import { readFileSync } from "node:fs"

/** The functions of rows.wat; addresses and lengths are in bytes. */
export interface RowFunctions {
  readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number }
  readonly largest: (from: number, to: number) => number
  readonly weigh: (
    logits: number,
    weights: number,
    sums: number,
    bytes: number,
    largest: number,
    scale: number,
    least: number,
  ) => void
  readonly total: (logits: number, sums: number, bytes: number, largest: number, scale: number) => void
  readonly collect: (
    logits: number,
    bytes: number,
    least: number,
    into: number,
    begins: number,
    table: number,
  ) => number
  readonly above: (weights: number, sums: number, bytes: number, least: number) => number
  readonly classify: (weights: number, bytes: number, buckets: number) => void
  readonly gather: (
    weights: number,
    bytes: number,
    least: number,
    below: number,
    into: number,
    intoEnd: number,
  ) => number
}

/** Node's; TypeScript declares it with the browser's interfaces only. */
declare const WebAssembly: {
  readonly Module: new (binary: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

const pageBytes = 65_536

const compiled = new WebAssembly.Module(readFileSync(new URL("rows.wasm", import.meta.url)))

/** The module with `bytes` bytes of memory. */
export const openRowFunctions = (bytes: number): RowFunctions => {
  // The exports are those of rows.wat.
  const functions = new WebAssembly.Instance(compiled).exports as RowFunctions
  functions.memory.grow(Math.ceil(bytes / pageBytes))
  return functions
}

/** Values whose weights have one sum. */
export const blockValues = 256
export const floatBytes = 4
export const vectorBytes = 16

/** Largest scale that keeps a difference of 0 at 0: the product with infinity would be no number. */
const largestScale = 1e30

/** What a difference of logits is multiplied by to be a power of two. */
export const scaleOf = (temperature: number): number => Math.min(Math.LOG2E / temperature, largestScale)

export const sumOf = (values: Float32Array): number => {
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += values[at]!
  return sum
}

/** Places after one another in the module's memory, each at a multiple of a vector. */
export class MemoryPlan {
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  take(bytes: number): number {
    const at = this.#bytes
    this.#bytes += Math.ceil(bytes / vectorBytes) * vectorBytes
    return at
  }
}

/** The block in which the running sum of the blocks passes `sum`, and what is left of `sum` before it. */
export const blockAt = (
  sums: Float32Array,
  sum: number,
): { readonly block: number; readonly left: number } => {
  let left = sum
  let found = { block: 0, left }
  for (let block = 0; block < sums.length; block++) {
    const within = sums[block]!
    if (within === 0) continue
    found = { block, left }
    if (left < within) break
    left -= within
  }
  return found
}

/** The place at which the running sum of the weights passes `sum`; -1 where all of them are 0. */
export const placeAt = (weights: Float32Array, sum: number): number => {
  let left = sum
  let found = -1
  for (let at = 0; at < weights.length; at++) {
    const weight = weights[at]!
    if (weight === 0) continue
    found = at
    left -= weight
    if (left < 0) break
  }
  // Sums are rounded: where they promised a little more than there is, the last place is the one.
  return found
}
