// The values of a row that top_p and top_k can keep: their logits and weights, in the order of the row. Filled by
// `Rows.collect`.
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

/** Most weights that one `gather` returns. */
export const gatherLimit = 8192

/** Bytes of a bucket of weights: 8 of sum, 4 of count, 4 unused. */
const bucketBytes = 16
/** Number of buckets. Weights are at most 1, and 1 is in the last bucket. */
const buckets = 1017

/** The least weight of each bucket: the number whose highest 12 bits are the bucket's index. */
const bucketStarts = new Float32Array(Uint32Array.from({ length: buckets + 1 }, (_, at) => at << 20).buffer)

interface Bucket {
  /** Weights in [least, below). */
  readonly least: number
  readonly below: number
  /** Sum or count of the buckets above. */
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
  /** Every second element is a bucket's sum. */
  readonly #sumsOfBuckets: Float64Array
  /** The third of every four elements is a bucket's count. */
  readonly #countsOfBuckets: Int32Array
  #count = 0
  /** Blocks that hold candidates. */
  #blocks = 0
  #largest = 0

  /** Plans memory for `blocks` blocks, a whole row, and one more block for padding. */
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

  /** Starts a row of `count` written logits; their weights are those at temperature 1. */
  begin(count: number, largest: number): void {
    this.#count = count
    this.#blocks = Math.ceil(count / blockValues)
    this.#largest = largest
    this.#logits.fill(-Infinity, count, this.#blocks * blockValues)
    this.#weigh(1, -Infinity)
  }

  /** Recomputes at `temperature` the weights that are at least `least`; the others become 0. Returns the sum. */
  keep(least: number, temperature: number): number {
    this.#weigh(temperature, least)
    return this.#total()
  }

  /** Count and sum of the weights that are at least `least` (above 0). */
  above(least: number): { readonly count: number; readonly sum: number } {
    const { sumsAt, weightsAt } = this.#at
    const count = this.#functions.above(weightsAt, sumsAt, this.#bytes, least)
    return { count, sum: this.#total() }
  }

  /**
   * The weights in [least, below), unordered, valid until the next call. If it returns `gatherLimit` of them, there may
   * be more.
   */
  gather(least: number, below: number): Float32Array {
    const { gatheredAt, weightsAt } = this.#at
    const limit = gatheredAt + gatherLimit * floatBytes
    const end = this.#functions.gather(weightsAt, this.#bytes, least, below, gatheredAt, limit)
    return this.#gathered.subarray(0, (end - gatheredAt) / floatBytes)
  }

  /** The bucket in which the running total, from the largest weights down, reaches `goal`. Undefined if the total stays below. */
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

  /** The candidate at which the running sum of the weights exceeds `sum`, which is below their total. */
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
