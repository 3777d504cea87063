// Log probabilities of tokens in a row of logits as the model computed it, before biases, penalties and temperature.
import type { Rows } from "./Rows.ts"

/** A token and its natural logarithm of probability. */
export interface ScoredToken {
  readonly token: number
  readonly logprob: number
}

export interface Score extends ScoredToken {
  /** The most likely tokens, the most likely first; of equal ones the one with the lower number. */
  readonly top: ReadonlyArray<ScoredToken>
}

/** The `count` tokens with the largest logits, descending. One pass, because few values replace one of the largest so far. */
const largestOf = (row: Float32Array, count: number): ReadonlyArray<number> => {
  const tokens: Array<number> = []
  let least = Number.NEGATIVE_INFINITY
  for (let token = 0; token < row.length; token++) {
    const logit = row[token]!
    // False for NaN too.
    if (!(logit > least)) continue
    let at = tokens.length
    while (at > 0 && row[tokens[at - 1]!]! < logit) at--
    tokens.splice(at, 0, token)
    if (tokens.length > count) tokens.pop()
    if (tokens.length === count) least = row[tokens[count - 1]!]!
  }
  return tokens
}

/** Loads the row into `rows`. `top`: how many of the most likely tokens. */
export const scoreOf = (rows: Rows, row: Float32Array, token: number, top: number): Score => {
  rows.load(row)
  const largest = rows.largest()
  const total = largest + Math.log(rows.weigh(largest, 1))
  const scored = (one: number): ScoredToken => ({ token: one, logprob: row[one]! - total })
  return { ...scored(token), top: top === 0 ? [] : largestOf(row, top).map(scored) }
}

/** Loads the row into `rows`. For each group the natural logarithm of the probability of its tokens together; -Infinity for none. */
export const massesOf = (
  rows: Rows,
  row: Float32Array,
  groups: ReadonlyArray<ReadonlyArray<number>>,
): ReadonlyArray<number> => {
  rows.load(row)
  const largest = rows.largest()
  const total = Math.log(rows.weigh(largest, 1))
  return groups.map((tokens) => {
    const mass = tokens.reduce((sum, token) => sum + Math.exp(row[token]! - largest), 0)
    return Math.log(mass) - total
  })
}
