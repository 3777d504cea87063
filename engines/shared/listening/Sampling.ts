// From one row of logits to one token and its log-probability. Pure apart from the random generator passed in.

/** Uniform numbers in [0, 1). */
type Random = () => number

/** A 32-bit generator (mulberry32): equal seeds give equal texts. Not for secrets. */
export const seededRandom = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Choice {
  readonly token: number
  /** Natural log-probability of `token` under the unscaled logits. */
  readonly logprob: number
}

/**
 * The largest value of `row` in [from, to). Four running maxima, because one would wait for each comparison, and a row has
 * 51,865 values.
 */
export const maxOf = (row: Float32Array, from: number, to: number): number => {
  let a = Number.NEGATIVE_INFINITY
  let b = a
  let c = a
  let d = a
  let i = from
  for (; i + 3 < to; i += 4) {
    if (row[i]! > a) a = row[i]!
    if (row[i + 1]! > b) b = row[i + 1]!
    if (row[i + 2]! > c) c = row[i + 2]!
    if (row[i + 3]! > d) d = row[i + 3]!
  }
  for (; i < to; i++) if (row[i]! > a) a = row[i]!
  return Math.max(a, b, c, d)
}

/** Index of the first largest value; 0 if all are NaN. */
export const argMax = (row: Float32Array): number => Math.max(0, row.indexOf(maxOf(row, 0, row.length)))

/** exp of this is less than the rounding error of a sum that is at least 1, in double precision. */
const negligible = -37

const steps = 64
/** exp(0), exp(−1/64), … down to exp(negligible). */
const exponentials = Float64Array.from({ length: 1 - negligible * steps }, (_, i) => Math.exp(-i / steps))

/**
 * Log of the sum of the exponentials; `max` is the row's maximum. Forbidden tokens (-Infinity), usually most, are skipped.
 * An exponential is a table entry times three terms of a series for the rest of at most 1/64, exact to 10⁻⁸:
 * with Math.exp, 1,500 timestamps a token took 5 % of a file's time (measured).
 */
const logSumExp = (row: Float32Array, max: number): number => {
  let sum = 0
  for (let i = 0; i < row.length; i++) {
    const below = row[i]! - max
    if (!(below > negligible)) continue
    const at = (below * -steps) | 0
    const rest = below + at / steps
    sum += exponentials[at]! * (1 + rest * (1 + rest * (0.5 + rest / 6)))
  }
  return max + Math.log(sum)
}

/** Softmax probability of one token. */
export const probability = (row: Float32Array, token: number): number => {
  const max = row[argMax(row)]!
  return Math.exp(row[token]! - logSumExp(row, max))
}

/** Greedy at temperature 0, else sampled from the softmax of `row / temperature`. */
export const choose = (row: Float32Array, temperature: number, random: Random): Choice => {
  const best = argMax(row)
  const max = row[best]!
  const total = logSumExp(row, max)
  const token = temperature <= 0 ? best : draw(row, max, temperature, random())
  return { token, logprob: row[token]! - total }
}

const draw = (row: Float32Array, max: number, temperature: number, uniform: number): number => {
  let sum = 0
  for (let i = 0; i < row.length; i++) sum += Math.exp((row[i]! - max) / temperature)
  let left = uniform * sum
  let last = 0
  for (let i = 0; i < row.length; i++) {
    const weight = Math.exp((row[i]! - max) / temperature)
    if (weight === 0) continue
    last = i
    left -= weight
    if (left < 0) return i
  }
  // Rounding can leave a rest of the sum: then the last possible token is chosen.
  return last
}
