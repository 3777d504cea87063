// One row of logits and the sums of its weights (exponentials). Single weights are kept only for Candidates, the few that
// top_p and top_k can keep: all of them would need another pass over 600 KB. In plain JavaScript the exponentials of
// 151,936 logits take 1.2 ms, here 0.055 (2 cores EPYC, 2026-11). One instance for each context.
import { Candidates } from "./Candidates.ts"
import {
  blockAt,
  blockValues,
  floatBytes,
  MemoryPlan,
  openRowFunctions,
  placeAt,
  type RowFunctions,
  scaleOf,
  sumOf,
  vectorBytes,
} from "./RowFunctions.ts"

/** For each mask of four lanes, the shuffle that moves its lanes to the front. */
const frontShuffles = (): Uint8Array =>
  Uint8Array.from({ length: 16 * vectorBytes }, (_, at) => {
    const lanes = [0, 1, 2, 3].filter((lane) => ((at >> 4) >> lane) & 1)
    const lane = lanes[(at >> 2) & 3]
    // 255 is outside of the vector and gives 0.
    return lane === undefined ? 255 : 4 * lane + (at & 3)
  })

export class Rows {
  readonly #functions: RowFunctions
  readonly #bytes: number
  readonly #sumsAt: number
  readonly #beginsAt: number
  readonly #blockAt: number
  readonly #blockSumAt: number
  readonly #tableAt: number
  /** Logits of the last loaded row; may be changed before `weigh`. Padded with -Infinity to whole blocks. */
  readonly logits: Float32Array
  readonly #sums: Float32Array
  /** Where the candidates of each block begin. */
  readonly #begins: Int32Array
  /** The weights of one block, for sampling from it. */
  readonly #block: Float32Array
  readonly #candidates: Candidates
  #largest = 0
  #scale = 0
  /** Least logit of a candidate. */
  #least = 0

  constructor(vocabularySize: number) {
    const blocks = Math.ceil(vocabularySize / blockValues)
    const values = blocks * blockValues
    this.#bytes = values * floatBytes
    const plan = new MemoryPlan()
    plan.take(this.#bytes)
    this.#sumsAt = plan.take(blocks * floatBytes)
    this.#beginsAt = plan.take(blocks * floatBytes)
    this.#blockAt = plan.take(blockValues * floatBytes)
    this.#blockSumAt = plan.take(floatBytes)
    this.#tableAt = plan.take(16 * vectorBytes)
    const openCandidates = Candidates.plan(plan, blocks)
    this.#functions = openRowFunctions(plan.bytes)
    const { memory } = this.#functions
    this.logits = new Float32Array(memory.buffer, 0, values).fill(-Infinity)
    this.#sums = new Float32Array(memory.buffer, this.#sumsAt, blocks)
    this.#begins = new Int32Array(memory.buffer, this.#beginsAt, blocks)
    this.#block = new Float32Array(memory.buffer, this.#blockAt, blockValues)
    new Uint8Array(memory.buffer, this.#tableAt).set(frontShuffles())
    this.#candidates = openCandidates(this.#functions)
  }

  load(row: Float32Array): void {
    this.logits.set(row)
  }

  /** The largest logit, ignoring NaN; -Infinity if there is no number. */
  largest(): number {
    return this.#functions.largest(0, this.#bytes)
  }

  /** The sum of all weights, exp((logit - largest) / temperature). The weight of NaN is 0. */
  weigh(largest: number, temperature: number): number {
    this.#largest = largest
    this.#scale = scaleOf(temperature)
    this.#functions.total(0, this.#sumsAt, this.#bytes, largest, this.#scale)
    return sumOf(this.#sums)
  }

  /** The values whose logit is at least `least`; valid until the next call. */
  collect(largest: number, least: number): Candidates {
    const { logitsAt } = this.#candidates
    const end = this.#functions.collect(0, this.#bytes, least, logitsAt, this.#beginsAt, this.#tableAt)
    this.#candidates.begin((end - logitsAt) / floatBytes, largest)
    this.#least = Math.fround(least)
    return this.#candidates
  }

  /** Index in the row of a candidate of the last `collect`. */
  valueOf(candidate: number): number {
    const begin = this.#candidates.logitsAt + candidate * floatBytes
    let block = 0
    while (block + 1 < this.#begins.length && this.#begins[block + 1]! <= begin) block++
    let before = (begin - this.#begins[block]!) / floatBytes
    for (let value = block * blockValues; value < this.logits.length; value++)
      if (this.logits[value]! >= this.#least && before-- === 0) return value
    return -1
  }

  /** After `weigh`: the index at which the running sum of the weights exceeds `sum`, which is below their total. */
  at(sum: number): number {
    const { block, left } = blockAt(this.#sums, sum)
    this.#functions.weigh(
      block * blockValues * floatBytes,
      this.#blockAt,
      this.#blockSumAt,
      blockValues * floatBytes,
      this.#largest,
      this.#scale,
      -Infinity,
    )
    const within = placeAt(this.#block, left)
    return within < 0 ? within : block * blockValues + within
  }
}
