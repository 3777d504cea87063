// The newest samples of a stream, in a ring: taking in more of them costs the same however many are kept. Pure; 16-bit samples.

/** Samples for which there is memory at first, 0.5 s of 16 kHz: it doubles until it holds as many as are kept. A guess. */
const firstSize = 8_000

export class NewestSamples {
  readonly #most: number
  #ring: Int16Array<ArrayBuffer>
  /** Where the next sample goes. */
  #next = 0
  #count = 0

  /** Keeps the `most` newest samples. */
  constructor(most: number) {
    this.#most = most
    this.#ring = new Int16Array(Math.min(most, firstSize))
  }

  push(samples: Int16Array): void {
    const kept = samples.length > this.#most ? samples.subarray(samples.length - this.#most) : samples
    if (this.#count + kept.length > this.#ring.length) this.#grow(this.#count + kept.length)
    const ring = this.#ring
    const behind = Math.min(kept.length, ring.length - this.#next)
    ring.set(behind === kept.length ? kept : kept.subarray(0, behind), this.#next)
    if (behind < kept.length) ring.set(kept.subarray(behind), 0)
    this.#next = (this.#next + kept.length) % ring.length
    this.#count = Math.min(ring.length, this.#count + kept.length)
  }

  /** The newest samples, a copy: so many of them, or all that are kept. */
  newest(count: number): Int16Array<ArrayBuffer> {
    const ring = this.#ring
    const wanted = Math.min(count, this.#count)
    const from = (this.#next - wanted + ring.length) % ring.length
    const out = new Int16Array(wanted)
    const behind = Math.min(wanted, ring.length - from)
    out.set(ring.subarray(from, from + behind))
    out.set(ring.subarray(0, wanted - behind), behind)
    return out
  }

  clear(): void {
    this.#next = 0
    this.#count = 0
  }

  #grow(needed: number): void {
    const size = Math.min(this.#most, Math.max(needed, 2 * this.#ring.length))
    if (size === this.#ring.length) return
    const kept = this.newest(this.#count)
    this.#ring = new Int16Array(size)
    this.#ring.set(kept)
    this.#next = kept.length % size
  }
}
