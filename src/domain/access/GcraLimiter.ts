// Counts recent failures per address in a bounded table and limits them with the generic cell rate algorithm. The
// caller passes the time.
//
// One number per address: the time at which all its failures are forgiven. Each failure moves it by `forgiveMs`; an
// address is refused while it lies more than `burst` failures ahead.

import { TtlCache } from "../queues/TtlCache.ts"

export interface FailedAttemptsOptions {
  /** Failures that may come at once. */
  readonly burst: number
  /** Time after which one failure is forgiven. */
  readonly forgiveMs: number
  /** Addresses in the table. A further one replaces the one with the oldest last failure. */
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

  /** Time until the address may try again. 0 if it may now. */
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

  /** Checks only the oldest few, so that a failure costs the same at any size of the table. */
  #dropStale(nowMs: number): void {
    for (let checks = 2; ; checks--) {
      const oldest = this.#failures.oldest()
      if (oldest === undefined) return
      const [address, { clearAtMs }] = oldest
      const over = this.#failures.size > this.#options.maxAddresses
      if (!over && (clearAtMs > nowMs || checks <= 0)) return
      this.#failures.delete(address)
    }
  }
}
