// Counts recent failures per address in a bounded table and limits them with the generic cell rate algorithm. The
// caller passes the time.
//
// One number per address: the time at which all its failures are forgiven. Each failure moves it by `forgiveMs`; an
// address is refused while it lies more than `burst` failures ahead.

import { LRUCache } from "lru-cache"

interface FailedAttemptsOptions {
  /** Failures that may come at once. */
  readonly burst: number
  /** Time after which one failure is forgiven. */
  readonly forgiveMs: number
  /** Addresses in the table. A further one replaces the one with the oldest last failure. */
  readonly maxAddresses: number
}

export class GcraLimiter {
  readonly #options: FailedAttemptsOptions
  /**
   * Address to the time when its failures are forgiven, in the order of last failures. Read with `peek`, which keeps
   * the order.
   */
  readonly #failures: LRUCache<string, number>

  constructor(options: FailedAttemptsOptions) {
    this.#options = options
    // By size: with `max`, memory for the whole table is taken now, which is several MB and tens of milliseconds.
    this.#failures = new LRUCache({ maxSize: options.maxAddresses, sizeCalculation: () => 1 })
  }

  get addresses(): number {
    return this.#failures.size
  }

  /** Time until the address may try again. 0 if it may now. */
  waitMs(address: string, nowMs: number): number {
    const { burst, forgiveMs } = this.#options
    const aheadMs = (this.#failures.peek(address) ?? nowMs) - nowMs
    return Math.max(0, aheadMs - (burst - 1) * forgiveMs)
  }

  failed(address: string, nowMs: number, count = 1): void {
    const before = this.#failures.peek(address) ?? nowMs
    this.#failures.set(address, Math.max(before, nowMs) + count * this.#options.forgiveMs)
    this.#dropStale(nowMs)
  }

  /** Removes at most two addresses, so that a failure costs the same at any size of the table. */
  #dropStale(nowMs: number): void {
    let checks = 2
    for (const address of this.#failures.rkeys()) {
      if ((this.#failures.peek(address) ?? nowMs) > nowMs || checks-- === 0) return
      this.#failures.delete(address)
    }
  }
}
