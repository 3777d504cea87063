// Draws tokens from rows of logits as a request's sampling asks for, in llama.cpp's order: penalties, top_k, top_p,
// temperature. One a request; LibllamaContext calls it.
//
// Nothing is sorted: top_k and top_p keep the tokens whose weight is at least some least weight. Tokens that are likely enough
// become candidates; where they turn out not to reach top_p or top_k, more do. Candidates are counted in buckets of equal
// magnitude, and only the bucket with the least weight is searched. Tokens that weigh exactly the least are all kept.
import type { Sampling } from "../../protocol/Engine.ts"
import { seededRandom } from "../../shared/listening/Sampling.ts"
import { type Candidates, gatherLimit } from "./Candidates.ts"
import type { Rows } from "./Rows.ts"

/** What is counted up to a goal: tokens for top_k, their weights for top_p. */
type Measure = "count" | "sum"

/** Most of the probability is mostly above, so other tokens are no candidates at first: 2^-14 of the largest weight. A guess. */
const likely = -14 * Math.LN2
/** Any logit but -Infinity. */
const smallestLogit = -3.4e38

/**
 * The largest weight such that those at least as large reach `goal`; the smallest of all where they do not. Reorders
 * `weights`.
 */
export const leastReaching = (weights: Float32Array, goal: number, measure: Measure): number => {
  let from = 0
  let to = weights.length
  let missing = goal
  let least = 0
  while (from < to) {
    least = weights[(from + to) >> 1]!
    // Three parts: larger, equal, smaller.
    let larger = from
    let smaller = to
    let sum = 0
    for (let at = from; at < smaller; ) {
      const weight = weights[at]!
      if (weight > least) {
        sum += measure === "sum" ? weight : 1
        weights[at++] = weights[larger]!
        weights[larger++] = weight
      } else if (weight < least) {
        weights[at] = weights[--smaller]!
        weights[smaller] = weight
      } else at++
    }
    if (sum >= missing && larger > from) {
      to = larger
      continue
    }
    missing -= sum + (smaller - larger) * (measure === "sum" ? least : 1)
    if (missing <= 0) return least
    from = smaller
  }
  return least
}

export class LogitSampler {
  readonly #rows: Rows
  readonly #sampling: Sampling
  readonly #random: () => number
  /** How often each token was drawn; empty without penalties. Bounded by the reply's length. */
  readonly #drawn = new Map<number, number>()
  readonly #penalized: boolean

  constructor(sampling: Sampling, rows: Rows) {
    this.#sampling = sampling
    this.#rows = rows
    this.#random = seededRandom(sampling.seed)
    this.#penalized = sampling.frequencyPenalty !== 0 || sampling.presencePenalty !== 0
  }

  /** The next token; -1 where no logit of the row is a finite number. */
  draw(row: Float32Array): number {
    this.#rows.load(row)
    this.#penalize()
    const largest = this.#rows.largest()
    if (!Number.isFinite(largest)) return -1
    const token = this.#sampling.temperature <= 0 ? this.#rows.logits.indexOf(largest) : this.#pick(largest)
    if (this.#penalized && token >= 0) this.#drawn.set(token, (this.#drawn.get(token) ?? 0) + 1)
    return token
  }

  #penalize(): void {
    const { frequencyPenalty, presencePenalty } = this.#sampling
    const { logits } = this.#rows
    for (const [token, count] of this.#drawn)
      logits[token] = logits[token]! - count * frequencyPenalty - presencePenalty
  }

  #pick(largest: number): number {
    const { temperature, topK, topP } = this.#sampling
    const rows = this.#rows
    if (!(topK > 0 && topK < rows.logits.length) && topP >= 1)
      return rows.at(this.#random() * rows.weigh(largest, temperature))
    const sum = rows.weigh(largest, 1)
    // Weights below this have together less than what top_p leaves out.
    const bound = largest + Math.log(((1 - topP) * sum) / rows.logits.length)
    const floors = [Math.max(largest + likely, bound), topP < 1 ? bound : smallestLogit, smallestLogit]
    for (const floor of floors) {
      const candidates = rows.collect(largest, floor)
      const least = this.#leastKept(candidates, sum, floor === smallestLogit)
      if (least !== undefined)
        return rows.valueOf(candidates.at(this.#random() * candidates.keep(least, temperature)))
    }
    return -1
  }

  /** The least weight that top_k and top_p keep; undefined where the candidates, if not all, do not reach their goals. */
  #leastKept(candidates: Candidates, sumOfAll: number, all: boolean): number | undefined {
    const { topK, topP } = this.#sampling
    // Rounding can leave a goal of all weights just above their sum: then the least is 0.
    const ofAll = all ? 0 : undefined
    let sum = sumOfAll
    let least: number | undefined = 0
    if (topK > 0 && topK < this.#rows.logits.length) {
      least = leastOf(candidates, "count", topK) ?? ofAll
      if (least === undefined || topP >= 1) return least
      sum = candidates.above(least).sum
    }
    // A top_p of 0 keeps the largest, too.
    const found = leastOf(candidates, "sum", Math.max(topP * sum, Number.MIN_VALUE)) ?? ofAll
    return found === undefined ? undefined : Math.max(least, found)
  }
}

const leastOf = (candidates: Candidates, measure: Measure, goal: number): number | undefined => {
  const bucket = candidates.bucketReaching(goal, measure)
  if (bucket === undefined) return undefined
  let { least, below } = bucket
  let missing = goal - bucket[measure]
  // Weights that are nearly equal are in one bucket: it is halved until few enough are left.
  for (let weights = candidates.gather(least, below); ; weights = candidates.gather(least, below)) {
    if (weights.length < gatherLimit) return leastReaching(weights, missing, measure)
    const middle = Math.fround((least + below) / 2)
    if (middle <= least || middle >= below) return least
    const above = candidates.above(middle)[measure] - candidates.above(below)[measure]
    if (above >= missing) least = middle
    else {
      below = middle
      missing -= above
    }
  }
}
