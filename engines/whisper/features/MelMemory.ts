// Log-mel frames of audio that grows, so that a live session's next window computes the new ones only. One an engine,
// asked by WhisperEncoder; bounded, and what it has forgotten is computed again. Knows neither samples nor sessions.
import type { KnownFrames } from "./LogMel.ts"

/** Most bytes of frames: 60 sessions with 8 s of 80 mel bins each, or 8 with 30 s of 128. A guess. */
const limitBytes = 16 * 1024 * 1024

export class MelMemory {
  /** The least recently used first. */
  private readonly streams = new Map<number, KnownFrames>()
  private sizeBytes = 0

  get bytes(): number {
    return this.sizeBytes
  }

  take(stream: number): KnownFrames | undefined {
    const known = this.streams.get(stream)
    if (known !== undefined && this.streams.delete(stream)) this.sizeBytes -= known.logs.byteLength
    return known
  }

  keep(stream: number, known: KnownFrames): void {
    this.take(stream)
    this.streams.set(stream, known)
    this.sizeBytes += known.logs.byteLength
    for (const oldest of this.streams.keys()) {
      if (this.sizeBytes <= limitBytes) return
      this.take(oldest)
    }
  }
}
