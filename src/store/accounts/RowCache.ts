// A bounded map whose entries expire after a fixed time. The caller passes the time.
//
// All entries live equally long, so the order of setting is the order of expiry: a full map drops the entry that would
// expire first.
import { LRUCache } from "lru-cache"

interface Entry<Value> {
  readonly value: Value
  readonly untilMs: number
}

export class RowCache<Value> {
  readonly #entries: LRUCache<string, Entry<Value>>
  readonly #lifeMs: number

  constructor(options: { readonly capacity: number; readonly lifeMs: number }) {
    this.#entries = new LRUCache({ max: options.capacity })
    this.#lifeMs = options.lifeMs
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string, nowMs: number): Value | undefined {
    // `peek` leaves the order alone.
    const entry = this.#entries.peek(key)
    return entry !== undefined && nowMs < entry.untilMs ? entry.value : undefined
  }

  /** The value however old it is. */
  evenOld(key: string): Value | undefined {
    return this.#entries.peek(key)?.value
  }

  clear(): void {
    this.#entries.clear()
  }

  /** `knownAtMs` is when the value was read, which is before it arrived here. */
  set(key: string, value: Value, knownAtMs: number): void {
    this.#entries.set(key, { value, untilMs: knownAtMs + this.#lifeMs })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}
