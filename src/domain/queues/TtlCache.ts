// A map ordered by age that finds its oldest entry quickly, for bounded tables and caches.
//
// A JavaScript map keeps the slots of deleted entries until it is rebuilt, and every new iterator walks over them: at
// 100,000 entries, reading the first key of a full map took 40 µs (measured). So one iterator is kept and only moves
// forward. An entry that was set again has moved to the end; the iterator recognises its old position by the identity
// of the value.
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

  /** Makes `key` the newest. A value object may be set only once: a change needs a new object. */
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
      // A finished iterator stays finished, even if entries are added.
      if (next.done === true) this.#scan = this.#entries.entries()
      this.#front = next.done === true ? undefined : next.value
    }
  }
}
