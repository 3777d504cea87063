// How often each address has failed lately, in a bounded table. Called by the api's limit of wrong credentials; holds no
// clock (the caller passes the time) and knows nothing of replies.
//
// One number an address: the time at which its failures are all forgotten. Each failure moves it by `forgiveMs`, and an
// address is refused while it lies more than `burst` failures ahead (the generic cell rate algorithm).

import { TtlCache } from "../queues/TtlCache.ts"

export interface FailedAttemptsOptions {
  /** Failures that may come at once. */
  readonly burst: number
  /** One failure is forgotten after this long. */
  readonly forgiveMs: number
  /** Addresses remembered. One more displaces the one whose last failure is the longest ago. */
  readonly maxAddresses: number
}

export class GcraLimiter {
  readonly #options: FailedAttemptsOptions
  /** By address, in the order of last failures. */
  readonly #failures = new TtlCache<{ readonly clearAtMs: number }>()

  constructor(options: FailedAttemptsOptions) {
    this.#options = options
  }

  get addresses(): number {
    return this.#failures.size
  }

  /** Time until the address may try again; 0 where it may now. */
  waitMs(address: string, nowMs: number): number {
    const { burst, forgiveMs } = this.#options
    const aheadMs = (this.#failures.get(address)?.clearAtMs ?? nowMs) - nowMs
    return Math.max(0, aheadMs - (burst - 1) * forgiveMs)
  }

  failed(address: string, nowMs: number): void {
    const before = this.#failures.get(address)?.clearAtMs ?? nowMs
    this.#failures.set(address, { clearAtMs: Math.max(before, nowMs) + this.#options.forgiveMs })
    this.#dropStale(nowMs)
  }

  /** The oldest few are looked at, so that a failure costs the same whatever the table holds. */
  #dropStale(nowMs: number): void {
    for (let looks = 2; ; looks--) {
      const oldest = this.#failures.oldest()
      if (oldest === undefined) return
      const [address, { clearAtMs }] = oldest
      const over = this.#failures.size > this.#options.maxAddresses
      if (!over && (clearAtMs > nowMs || looks <= 0)) return
      this.#failures.delete(address)
    }
  }
}
