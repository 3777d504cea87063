// A token bucket: an allowance with a burst that refills at a fixed rate. The caller passes the time of a monotonic
// clock.

export interface Allowance {
  /** Largest amount that can be spent at once. */
  readonly burst: number
  /** Refill per second, up to `burst`. */
  readonly perSecond: number
}

export class TokenBucket {
  readonly #allowance: Allowance
  #left: number
  #sinceMs: number

  constructor(allowance: Allowance, nowMs: number) {
    this.#allowance = allowance
    this.#left = allowance.burst
    this.#sinceMs = nowMs
  }

  /** The amount that can be spent now. */
  available(nowMs: number): number {
    const { burst, perSecond } = this.#allowance
    return Math.min(burst, this.#left + ((nowMs - this.#sinceMs) / 1_000) * perSecond)
  }

  /** Milliseconds until `cost` can be spent, rounded up. `cost` is at most the burst. */
  waitMs(cost: number, nowMs: number): number {
    return Math.ceil(Math.max(0, (cost - this.available(nowMs)) / this.#allowance.perSecond) * 1_000)
  }

  /** Adds an amount, up to `burst`; takes one below 0, also where less is left: then it is owed. */
  add(amount: number, nowMs: number): void {
    const { burst } = this.#allowance
    this.#left = Math.min(burst, this.available(nowMs) + amount)
    this.#sinceMs = nowMs
  }

  /** Spends `cost`, or all that is left. False if less was left. */
  spend(cost: number, nowMs: number): boolean {
    const available = this.available(nowMs)
    this.#left = Math.max(0, available - cost)
    this.#sinceMs = nowMs
    return cost <= available
  }
}
