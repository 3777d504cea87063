// The functions of rows.wat on values in the memory of a WebAssembly module, four at a time, with the helpers that
// Rows and Candidates share. `rows.wasm` is what wabt compiles from the text (a test compares).
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

/** Node has it; TypeScript declares it together with the browser's interfaces only. */
declare const WebAssembly: {
  readonly Module: new (binary: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

const pageBytes = 65_536

const compiled = new WebAssembly.Module(readFileSync(new URL("rows.wasm", import.meta.url)))

/** An instance of the module with `bytes` bytes of memory. */
export const openRowFunctions = (bytes: number): RowFunctions => {
  // The exports are those of rows.wat.
  const functions = new WebAssembly.Instance(compiled).exports as RowFunctions
  functions.memory.grow(Math.ceil(bytes / pageBytes))
  return functions
}

/** Values of a block, whose weights share one sum. */
export const blockValues = 256
export const floatBytes = 4
export const vectorBytes = 16

/** Largest scale. With an infinite scale, a difference of 0 would give NaN. */
const largestScale = 1e30

/** Factor that turns a difference of logits into an exponent of 2. */
export const scaleOf = (temperature: number): number => Math.min(Math.LOG2E / temperature, largestScale)

export const sumOf = (values: Float32Array): number => {
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += values[at]!
  return sum
}

/** Allocates memory of the module, one range after the other, each aligned to a vector. */
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

/** The block in which the running sum of the blocks exceeds `sum`, and the part of `sum` that is left there. */
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

/** The index at which the running sum of the weights exceeds `sum`; -1 if all of them are 0. */
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
  // Rounding can make the total smaller than expected: then the last index with a weight is returned.
  return found
}
