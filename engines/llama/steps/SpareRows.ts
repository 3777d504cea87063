// How many rows a common call has: one for each reply, and spare ones of idle sequences where that makes it faster. Pure.
//
// llama.cpp's kernels work on groups of rows and are slow for what is left (0.2 B, Q8_0, two threads, AVX-512: 5, 6 and 7 rows take 40, 45 and
// 49 ms and 8 take 35; 13, 14 and 15 take 52, 57 and 60 and 16 take 40). Which numbers are fast depends on the processor and on the format of
// the weights, so both are measured with the calls themselves.
import { type CostCurve, callsOfSize, paceCalls, paceMs } from "./CostCurve.ts"

/** Spare rows are worth it if a call without them takes this many times as long. A guess: beyond measurement error. */
const worth = 1.1

interface Call {
  readonly ms: number
  readonly atMs: number
}

export class SpareRows {
  readonly #costs: CostCurve
  readonly #nowMs: () => number
  /** By the number of rows. */
  readonly #recent = new Map<number, ReadonlyArray<Call>>()

  /** `costs`: of calls by their number of rows. */
  constructor(costs: CostCurve, nowMs: () => number = () => performance.now()) {
    this.#costs = costs
    this.#nowMs = nowMs
  }

  /** One call with this many rows took `ms`. */
  observe(rows: number, ms: number): void {
    const calls = this.#recent.get(rows) ?? []
    this.#recent.set(rows, [...calls.slice(1 - paceCalls), { ms, atMs: this.#nowMs() }])
  }

  /** Rows of a call for so many replies: as many, or the next number whose duration is kept. */
  rowsFor(replies: number): number {
    const next = this.#costs.sizes.find((size) => size >= replies) ?? replies
    if (next === replies || !this.#costs.isMeasured(next)) return replies
    const without = this.#leastMs(replies)
    if (without === undefined) return replies
    const withMs = this.#leastMs(next) ?? this.#costs.quietMs(next)
    return without > worth * withMs ? next : replies
  }

  /** The least duration of recent calls: other programs only lengthen calls. Undefined if there were few. */
  #leastMs(rows: number): number | undefined {
    const fromMs = this.#nowMs() - paceMs
    const calls = (this.#recent.get(rows) ?? []).filter(({ atMs }) => atMs >= fromMs)
    return calls.length < callsOfSize ? undefined : Math.min(...calls.map(({ ms }) => ms))
  }
}
