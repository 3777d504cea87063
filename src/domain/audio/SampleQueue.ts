// Samples that wait to be played, in the pieces in which they came. Pure.

export class SampleQueue {
  #pieces: Array<Int16Array> = []
  #length = 0

  /** Samples that wait. */
  get length(): number {
    return this.#length
  }

  /** The samples must not be changed afterwards. */
  push(samples: Int16Array): void {
    if (samples.length === 0) return
    this.#pieces.push(samples)
    this.#length += samples.length
  }

  clear(): void {
    this.#pieces = []
    this.#length = 0
  }

  /** Removes the next samples. Silence follows where fewer wait. */
  take(samples: number): Int16Array {
    const taken = new Int16Array(samples)
    let at = 0
    while (at < samples) {
      const [first] = this.#pieces
      if (first === undefined) break
      const part = first.subarray(0, samples - at)
      taken.set(part, at)
      at += part.length
      if (part.length === first.length) this.#pieces.shift()
      else this.#pieces[0] = first.subarray(part.length)
    }
    this.#length -= at
    return taken
  }
}
