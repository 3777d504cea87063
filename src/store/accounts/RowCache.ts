// A bounded map whose entries stop counting after a fixed time. Accounts keeps credentials in it; it holds no clock.
//
// Every entry lives equally long, so the order of insertion is the order of expiry: when full, the entry dropped is the
// one that would have expired first.
import { TtlCache } from "#domain/queues/TtlCache.ts"

export class RowCache<Value> {
  readonly #entries = new TtlCache<{ readonly value: Value; readonly untilMs: number }>()
  readonly #capacity: number
  readonly #lifeMs: number

  constructor(options: { readonly capacity: number; readonly lifeMs: number }) {
    this.#capacity = options.capacity
    this.#lifeMs = options.lifeMs
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && nowMs < entry.untilMs ? entry.value : undefined
  }

  /** `knownAtMs` is when the value was known to hold, which is before it arrived here. */
  set(key: string, value: Value, knownAtMs: number): void {
    // A refreshed entry moves to the end of the order.
    this.#entries.set(key, { value, untilMs: knownAtMs + this.#lifeMs })
    while (this.#entries.size > this.#capacity) {
      const oldest = this.#entries.oldest()
      if (oldest === undefined) return
      this.#entries.delete(oldest[0])
    }
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}
