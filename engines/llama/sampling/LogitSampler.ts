// Samples tokens from rows of logits in llama.cpp's order: biases, penalties, top_k, top_p, temperature. One instance for
// each reply.
//
// A token that the reply may not continue with is replaced by another draw, from the row without all such tokens. That gives
// each of the others the probability that it has among them, as masking every row would, and most rows are never masked.
//
// Nothing is sorted: top_k and top_p keep the tokens whose weight is at least a threshold. Only likely tokens become
// candidates; if these do not reach top_p or top_k, the threshold is lowered. Candidates are counted in buckets of equal
// magnitude, and only the bucket with the threshold is searched. All tokens whose weight equals the threshold are kept.
import type { Sampling } from "../../protocol/Engine.ts"
import { seededRandom } from "../../shared/listening/Sampling.ts"
import { type Candidates, gatherLimit } from "./Candidates.ts"
import type { LaterDraw } from "./LaterDraws.ts"
import type { Rows } from "./Rows.ts"

/** Which tokens a reply may continue with. */
export interface TokenChoice {
  readonly allows: (token: number) => boolean
  /** Works for a slice on what `mask` needs; true once it has it. Absent: that takes no time. */
  readonly find?: () => boolean
  /** Sets the logits of all tokens that are not allowed to -Infinity. Called only if `allows` refused the sampled token. */
  readonly mask: (logits: Float32Array) => void
}

/** Numbers to add to logits; -Infinity excludes a token. */
export type Biases = ReadonlyArray<readonly [token: number, bias: number]>

/** What is summed up to a goal: tokens for top_k, their weights for top_p. */
type Measure = "count" | "sum"

/** First threshold of candidates: 2^-14 of the largest weight, because most of the probability usually lies above. A guess. */
const likely = -14 * Math.LN2
/** Lower than any finite logit in use, higher than -Infinity. */
const smallestLogit = -3.4e38

/**
 * The largest weight such that the weights at least as large reach `goal`; the smallest of all if they do not. Reorders
 * `weights`.
 */
export const leastReaching = (weights: Float32Array, goal: number, measure: Measure): number => {
  let from = 0
  let to = weights.length
  let missing = goal
  let least = 0
  while (from < to) {
    least = weights[(from + to) >> 1]!
    // Partition into three parts: larger, equal, smaller.
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
  /** How often each token was sampled; empty without penalties. At most the reply's length. */
  readonly #drawn = new Map<number, number>()
  readonly #penalized: boolean
  readonly #biases: Biases | undefined

  /** `biases`: of tokens of the vocabulary. */
  constructor(sampling: Sampling, rows: Rows, biases?: Biases) {
    this.#sampling = sampling
    this.#rows = rows
    this.#biases = biases
    this.#random = seededRandom(sampling.seed)
    this.#penalized = sampling.frequencyPenalty !== 0 || sampling.presencePenalty !== 0
  }

  /** The next token; -1 if the row has no finite logit, or none of a token that is allowed. */
  draw(row: Float32Array, choice?: TokenChoice): number {
    if (choice === undefined) {
      this.#load(row)
      return this.#drawnAs(this.#next())
    }
    const drawn = this.choose(row, choice)
    if (typeof drawn === "number") return drawn
    while (!drawn.advance());
    return drawn.token()
  }

  /** As `draw`; a draw that has to be gone on with if the mask takes longer than a slice. The row may change then. */
  choose(row: Float32Array, choice: TokenChoice): number | LaterDraw {
    this.#load(row)
    const token = this.#next()
    if (token < 0 || choice.allows(token)) return this.#drawnAs(token)
    const { find } = choice
    if (find === undefined || find()) return this.#drawMasked(row, choice)
    const kept = row.slice()
    return { row: kept, advance: find, token: () => this.#drawMasked(kept, choice) }
  }

  #drawMasked(row: Float32Array, choice: TokenChoice): number {
    const masked = this.#rows.logits.subarray(0, row.length)
    this.#load(row)
    choice.mask(masked)
    const token = this.#next()
    if (token >= 0 || this.#biases === undefined) return this.#drawnAs(token)
    // The biases exclude every token that is allowed here: the allowed ones win.
    this.#rows.load(row)
    choice.mask(masked)
    return this.#drawnAs(this.#next())
  }

  #drawnAs(token: number): number {
    if (token >= 0) this.count(token)
    return token
  }

  /** The row with its biases and penalties. */
  #load(row: Float32Array): void {
    this.#rows.load(row)
    if (this.#biases !== undefined) this.#bias(this.#biases)
    this.#penalize()
  }

  /** The reply goes on with this token; only the penalties need it. `draw` does it for the tokens that it returns. */
  count(token: number): void {
    if (this.#penalized) this.#drawn.set(token, (this.#drawn.get(token) ?? 0) + 1)
  }

  #next(): number {
    const largest = this.#rows.largest()
    if (!Number.isFinite(largest)) return -1
    return this.#sampling.temperature <= 0 ? this.#rows.logits.indexOf(largest) : this.#pick(largest)
  }

  #bias(biases: Biases): void {
    const { logits } = this.#rows
    for (const [token, bias] of biases) logits[token] = logits[token]! + bias
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
    // All weights below this have a smaller sum than what top_p leaves out.
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

  /** The least weight that top_k and top_p keep. Undefined if the candidates do not reach their goals and are not `all`. */
  #leastKept(candidates: Candidates, sumOfAll: number, all: boolean): number | undefined {
    const { topK, topP } = this.#sampling
    // Rounding can leave a goal of all weights slightly above their sum: then the least weight is 0.
    const ofAll = all ? 0 : undefined
    let sum = sumOfAll
    let least: number | undefined = 0
    if (topK > 0 && topK < this.#rows.logits.length) {
      least = leastOf(candidates, "count", topK) ?? ofAll
      if (least === undefined || topP >= 1) return least
      sum = candidates.above(least).sum
    }
    // A top_p of 0 keeps the largest weight too.
    const found = leastOf(candidates, "sum", Math.max(topP * sum, Number.MIN_VALUE)) ?? ofAll
    return found === undefined ? undefined : Math.max(least, found)
  }
}

const leastOf = (candidates: Candidates, measure: Measure, goal: number): number | undefined => {
  const bucket = candidates.bucketReaching(goal, measure)
  if (bucket === undefined) return undefined
  let { least, below } = bucket
  let missing = goal - bucket[measure]
  // Nearly equal weights share a bucket: it is halved until few enough are left.
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
