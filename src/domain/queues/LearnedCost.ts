// What a piece of work costs, as it was learned from measurements. While nothing is measured, what was learned in a bad minute is
// forgotten: otherwise a machine that was busy once would refuse work that it could do, and so never measure again. Pure; the caller
// passes the time.

/** A measurement stands so long, milliseconds: longer than the pauses of a person who thinks. A guess. */
export const standsMs = 10_000

/** After that, what it says beyond the usual cost halves in each of these times, milliseconds. A guess. */
export const halvesMs = 10_000

export class LearnedCost {
  #usual: number
  #learned: number | undefined
  #learnedAtMs = 0

  /** `usual`: what is expected of a machine that is not busy. `first`: what was measured before, for example at the load. */
  constructor(usual: number, first?: number) {
    this.#usual = usual
    this.#learned = first
  }

  /** The cost; undefined where nothing was ever measured. */
  at(nowMs: number): number | undefined {
    const forgettingMs = nowMs - this.#learnedAtMs - standsMs
    if (this.#learned === undefined || this.#learned <= this.#usual || forgettingMs <= 0) return this.#learned
    return this.#usual + (this.#learned - this.#usual) * 2 ** (-forgettingMs / halvesMs)
  }

  /** The cost is this now, by a measurement. A lower one than the usual cost shows that a machine that is not busy needs less. */
  learn(cost: number, nowMs: number): void {
    this.#usual = Math.min(this.#usual, cost)
    this.#learned = cost
    this.#learnedAtMs = nowMs
  }
}
