// What an engine keeps of live audio between two requests: how far each stream was transcribed, and the states there. A stream that is not
// kept any more is transcribed anew from the beginning of its piece, with the same result. Knows no ONNX.

/** Least recently used streams go first. Streams are numbered by the gateway, so two sessions never share one. */
export class Streams<P> {
  readonly #most: number
  /** In the order of their last use. */
  readonly #kept = new Map<number, P>()

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#kept.size
  }

  get(stream: number | undefined): P | undefined {
    if (stream === undefined) return undefined
    const progress = this.#kept.get(stream)
    if (progress === undefined) return undefined
    this.#kept.delete(stream)
    this.#kept.set(stream, progress)
    return progress
  }

  keep(stream: number | undefined, progress: P): void {
    if (stream === undefined) return
    this.#kept.delete(stream)
    this.#kept.set(stream, progress)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#most) break
      this.#kept.delete(oldest)
    }
  }

  forget(stream: number | undefined): void {
    if (stream !== undefined) this.#kept.delete(stream)
  }
}
