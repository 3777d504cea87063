// A token bucket: an allowance with a burst that refills at a fixed rate. The caller passes the time of a monotonic
// clock.

export interface Allowance {
  /** Largest amount that can be spent at once. */
  readonly burst: number
  /** Refill per second, up to `burst`. */
  readonly perSecond: number
}

export class TokenBucket {
  private readonly allowance: Allowance
  private left: number
  private sinceMs: number

  constructor(allowance: Allowance, nowMs: number) {
    this.allowance = allowance
    this.left = allowance.burst
    this.sinceMs = nowMs
  }

  /** The amount that can be spent now. */
  available(nowMs: number): number {
    const { burst, perSecond } = this.allowance
    return Math.min(burst, this.left + ((nowMs - this.sinceMs) / 1_000) * perSecond)
  }

  /** Spends `cost`, or all that is left. False if less was left. */
  spend(cost: number, nowMs: number): boolean {
    const available = this.available(nowMs)
    this.left = Math.max(0, available - cost)
    this.sinceMs = nowMs
    return cost <= available
  }
}
