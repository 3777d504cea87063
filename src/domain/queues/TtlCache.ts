// A map that knows its oldest entry at once: what bounded tables and caches drop from. Used by GcraLimiter and the
// store's RowCache; pure but for itself.
//
// A JavaScript map keeps the places of deleted entries until it is rebuilt, and every new iterator walks over them: at
// 100,000 entries, asking a full map for its first key cost 40 µs (measured). So one iterator is kept and only ever goes
// forward; an entry that was set again is found by identity to be no longer where it was.
export class TtlCache<Value extends object> {
  readonly #entries = new Map<string, Value>()
  #scan = this.#entries.entries()
  #front: readonly [key: string, value: Value] | undefined

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)
  }

  /** Makes `key` the newest. A value may be set once only: a change is a new object. */
  set(key: string, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  oldest(): readonly [key: string, value: Value] | undefined {
    if (this.#entries.size === 0) return undefined
    for (;;) {
      const front = this.#front
      if (front !== undefined && this.#entries.get(front[0]) === front[1]) return front
      const next = this.#scan.next()
      // At the end an iterator stays there, whatever comes later.
      if (next.done === true) this.#scan = this.#entries.entries()
      this.#front = next.done === true ? undefined : next.value
    }
  }
}
