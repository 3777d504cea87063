// An allowance that refills with time: a burst at once, and a rate for ever. Holds no clock: the caller passes the time,
// of a clock that is never set back. Used for the frames of WebSockets and for requests without a credential.

export interface Allowance {
  /** What may be spent at once. */
  readonly burst: number
  /** What comes back in a second, up to `burst`. */
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

  /** What may be spent now. */
  available(nowMs: number): number {
    const { burst, perSecond } = this.allowance
    return Math.min(burst, this.left + ((nowMs - this.sinceMs) / 1_000) * perSecond)
  }

  /** Spends `cost`, at most all there is. False where there was less. */
  spend(cost: number, nowMs: number): boolean {
    const available = this.available(nowMs)
    this.left = Math.max(0, available - cost)
    this.sinceMs = nowMs
    return cost <= available
  }
}
