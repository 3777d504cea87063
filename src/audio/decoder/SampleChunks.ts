// Collects decoded samples into whole chunks and limits their number. Both decoders deliver through it, so a chunk has
// the same samples whatever the pieces were in which FFmpeg gave them.
import type { DecodeSink } from "./DecodeInput.ts"
import { chunkSamples } from "./DecoderWire.ts"
import { Rejected } from "./Rejected.ts"

const sampleBytes = Float32Array.BYTES_PER_ELEMENT

export class SampleChunks {
  readonly #maxSamples: number
  readonly #maxSeconds: number
  readonly #emit: DecodeSink["emit"]
  #chunk = new Uint8Array(chunkSamples * sampleBytes)
  #filled = 0
  #bytes = 0

  constructor(limits: { readonly rateHz: number; readonly maxSeconds: number }, emit: DecodeSink["emit"]) {
    this.#maxSamples = Math.floor(limits.maxSeconds * limits.rateHz)
    this.#maxSeconds = this.#maxSamples / limits.rateHz
    this.#emit = emit
  }

  /** Whole samples that were taken. */
  get samples(): number {
    return Math.floor(this.#bytes / sampleBytes)
  }

  /**
   * Takes f32 samples in the machine's byte order; the bytes are copied and may end within a sample. Waits for the
   * reader when a chunk is full. Fails with `Rejected` above the limit.
   */
  async take(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const count = Math.min(this.#chunk.length - this.#filled, bytes.length - at)
      this.#chunk.set(bytes.subarray(at, at + count), this.#filled)
      this.#filled += count
      this.#bytes += count
      at += count
      if (this.samples > this.#maxSamples) {
        throw new Rejected("TooLong", `The audio is longer than ${this.#maxSeconds} seconds`)
      }
      if (this.#filled === this.#chunk.length) {
        const full = this.#chunk
        this.#chunk = new Uint8Array(chunkSamples * sampleBytes)
        this.#filled = 0
        await this.#emit(new Float32Array(full.buffer))
      }
    }
  }

  /** Emits what the last chunk holds. */
  async end(): Promise<void> {
    const samples = Math.floor(this.#filled / sampleBytes)
    if (samples > 0) await this.#emit(new Float32Array(this.#chunk.buffer.slice(0, samples * sampleBytes)))
  }
}
