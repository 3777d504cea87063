// A bounded map whose entries expire after a fixed time. The caller passes the time.
//
// All entries live equally long, so insertion order is expiry order: a full map drops the entry that would expire
// first.
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

  /** `knownAtMs` is when the value was read, which is before it arrived here. */
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
