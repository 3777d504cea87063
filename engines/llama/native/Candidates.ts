// The values of a row that top_p and top_k can keep: their logits and weights, one after the other in the order of the row.
// Rows collects them; LogitSampler finds the least weight that is kept, and draws.
import {
  blockAt,
  blockValues,
  floatBytes,
  type MemoryPlan,
  placeAt,
  type RowFunctions,
  scaleOf,
  sumOf,
} from "./RowFunctions.ts"

/** Most weights of one `gather`. */
export const gatherLimit = 8192

/** Of a bucket of weights: 8 bytes of sum, 4 of count, 4 unused. */
const bucketBytes = 16
/** Weights are at most 1, which is in the last. */
const buckets = 1017

/** The least weight of a bucket: a number whose highest 12 bits are the bucket's. */
const bucketStarts = new Float32Array(Uint32Array.from({ length: buckets + 1 }, (_, at) => at << 20).buffer)

export interface Bucket {
  /** Weights in [least, below). */
  readonly least: number
  readonly below: number
  /** Of the buckets above. */
  readonly count: number
  readonly sum: number
}

interface Places {
  readonly logitsAt: number
  readonly weightsAt: number
  readonly sumsAt: number
  readonly bucketsAt: number
  readonly gatheredAt: number
  readonly blocks: number
}

export class Candidates {
  readonly #functions: RowFunctions
  readonly #at: Places
  readonly #logits: Float32Array
  readonly #weights: Float32Array
  readonly #sums: Float32Array
  readonly #gathered: Float32Array
  /** Every second one. */
  readonly #sumsOfBuckets: Float64Array
  /** The third of every four. */
  readonly #countsOfBuckets: Int32Array
  #count = 0
  /** Of the blocks that hold candidates. */
  #blocks = 0
  #largest = 0

  /** Takes memory for as many as the whole row, which is `blocks` long; a block more because blocks are filled up. */
  static plan(memory: MemoryPlan, blocks: number): (functions: RowFunctions) => Candidates {
    const bytes = (blocks + 1) * blockValues * floatBytes
    const places: Places = {
      logitsAt: memory.take(bytes),
      weightsAt: memory.take(bytes),
      sumsAt: memory.take((blocks + 1) * floatBytes),
      bucketsAt: memory.take(buckets * bucketBytes),
      gatheredAt: memory.take(gatherLimit * floatBytes),
      blocks: blocks + 1,
    }
    return (functions) => new Candidates(functions, places)
  }

  private constructor(functions: RowFunctions, at: Places) {
    const { buffer } = functions.memory
    const values = at.blocks * blockValues
    this.#functions = functions
    this.#at = at
    this.#logits = new Float32Array(buffer, at.logitsAt, values)
    this.#weights = new Float32Array(buffer, at.weightsAt, values)
    this.#sums = new Float32Array(buffer, at.sumsAt, at.blocks)
    this.#gathered = new Float32Array(buffer, at.gatheredAt, gatherLimit)
    this.#sumsOfBuckets = new Float64Array(buffer, at.bucketsAt, 2 * buckets)
    this.#countsOfBuckets = new Int32Array(buffer, at.bucketsAt, 4 * buckets)
  }

  get logitsAt(): number {
    return this.#at.logitsAt
  }

  get count(): number {
    return this.#count
  }

  /** `count` logits were written; their weights are those at temperature 1. */
  begin(count: number, largest: number): void {
    this.#count = count
    this.#blocks = Math.ceil(count / blockValues)
    this.#largest = largest
    this.#logits.fill(-Infinity, count, this.#blocks * blockValues)
    this.#weigh(1, -Infinity)
  }

  /** Weights at `temperature` for those whose weight so far is at least `least`; the others weigh nothing. Their sum. */
  keep(least: number, temperature: number): number {
    this.#weigh(temperature, least)
    return this.#total()
  }

  /** How many weights are at least `least`, which is above 0, and their sum. */
  above(least: number): { readonly count: number; readonly sum: number } {
    const { sumsAt, weightsAt } = this.#at
    const count = this.#functions.above(weightsAt, sumsAt, this.#bytes, least)
    return { count, sum: this.#total() }
  }

  /**
   * The weights in [least, below), in no order that means anything, until the next call. As many as `gatherLimit` are
   * perhaps not all.
   */
  gather(least: number, below: number): Float32Array {
    const { gatheredAt, weightsAt } = this.#at
    const limit = gatheredAt + gatherLimit * floatBytes
    const end = this.#functions.gather(weightsAt, this.#bytes, least, below, gatheredAt, limit)
    return this.#gathered.subarray(0, (end - gatheredAt) / floatBytes)
  }

  /** The bucket of equal magnitude in which the weights, from the largest down, reach `goal`. Undefined where all do not. */
  bucketReaching(goal: number, measure: "count" | "sum"): Bucket | undefined {
    this.#sumsOfBuckets.fill(0)
    this.#functions.classify(this.#at.weightsAt, this.#count * floatBytes, this.#at.bucketsAt)
    let count = 0
    let sum = 0
    for (let bucket = buckets - 1; bucket >= 0; bucket--) {
      const within = this.#countsOfBuckets[4 * bucket + 2]!
      if (within === 0) continue
      const above = { count, sum }
      count += within
      sum += this.#sumsOfBuckets[2 * bucket]!
      if ((measure === "count" ? count : sum) >= goal)
        return { least: bucketStarts[bucket]!, below: bucketStarts[bucket + 1]!, ...above }
    }
    return undefined
  }

  /** The candidate at which the running sum of the weights passes `sum`, which is below their total. */
  at(sum: number): number {
    const { block, left } = blockAt(this.#sums.subarray(0, this.#blocks), sum)
    const from = block * blockValues
    const within = placeAt(this.#weights.subarray(from, from + blockValues), left)
    return within < 0 ? within : from + within
  }

  get #bytes(): number {
    return this.#blocks * blockValues * floatBytes
  }

  #weigh(temperature: number, least: number): void {
    const { logitsAt, sumsAt, weightsAt } = this.#at
    const scale = scaleOf(temperature)
    this.#functions.weigh(logitsAt, weightsAt, sumsAt, this.#bytes, this.#largest, scale, least)
  }

  #total(): number {
    return sumOf(this.#sums.subarray(0, this.#blocks))
  }
}
