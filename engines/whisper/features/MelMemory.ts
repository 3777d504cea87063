// Cache of log-mel frames of live audio, so that a live session's next window computes only the new frames. One for each
// engine. Bounded; evicted frames are computed again.
import type { KnownFrames } from "../../shared/listening/LogMel.ts"

/** Most bytes of frames: 60 sessions with 8 s of 80 mel bins each, or 8 with 30 s of 128. A guess. */
const limitBytes = 16 * 1024 * 1024

export class MelMemory {
  /** The least recently used stream first. */
  readonly #streams = new Map<number, KnownFrames>()
  #sizeBytes = 0

  get bytes(): number {
    return this.#sizeBytes
  }

  take(stream: number): KnownFrames | undefined {
    const known = this.#streams.get(stream)
    if (known !== undefined && this.#streams.delete(stream)) this.#sizeBytes -= known.logs.byteLength
    return known
  }

  keep(stream: number, known: KnownFrames): void {
    this.take(stream)
    this.#streams.set(stream, known)
    this.#sizeBytes += known.logs.byteLength
    for (const oldest of this.#streams.keys()) {
      if (this.#sizeBytes <= limitBytes) return
      this.take(oldest)
    }
  }
}
