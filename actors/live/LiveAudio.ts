// The audio of one live session: 16-bit samples in one buffer that grows by doubling up to the session's limit. Samples
// that are no longer needed are dropped, so a long session holds its open piece and not its history. Plain data, no
// I/O.
import { bytesToS16, s16ToF32 } from "#domain/audio/Audio.ts"

/** One second of 16 kHz: an idle session has no buffer at all, a short one a small one. */
const firstSamples = 16_000

const nothing = new Int16Array(0)

export class LiveAudio {
  /** Most samples that are accepted in all. */
  readonly limitSamples: number
  #buffer = nothing
  /** Position in the session of the buffer's first sample. */
  #start = 0
  /** Samples received so far. */
  total = 0

  constructor(limitSamples: number) {
    this.limitSamples = limitSamples
  }

  get isFull(): boolean {
    return this.total === this.limitSamples
  }

  /** Samples that are still needed. */
  get heldSamples(): number {
    return this.total - this.#start
  }

  get capacitySamples(): number {
    return this.#buffer.length
  }

  /** Appends little-endian s16, an even number of bytes, up to the limit; later samples are dropped. */
  append(bytes: Uint8Array): void {
    const freeBytes = (this.limitSamples - this.total) * 2
    const samples = bytesToS16(bytes.length > freeBytes ? bytes.subarray(0, freeBytes) : bytes)
    if (samples.length === 0) return
    this.#reserve(samples.length)
    this.#buffer.set(samples, this.total - this.#start)
    this.total += samples.length
  }

  /** Copies the samples between two positions of the session, as the engines need them. */
  read(from: number, to: number): Float32Array {
    if (from < this.#start) throw new RangeError("this audio is forgotten")
    return s16ToF32(this.#buffer.subarray(from - this.#start, to - this.#start))
  }

  /** Samples before `position` are not read again. */
  forgetBefore(position: number): void {
    const drop = position - this.#start
    if (drop <= 0) return
    this.#buffer.copyWithin(0, drop, this.total - this.#start)
    this.#start = position
  }

  /** The audio ends at `position`; what came after it is dropped. */
  endAt(position: number): void {
    this.total = Math.min(this.total, Math.max(this.#start, position))
  }

  #reserve(count: number): void {
    const held = this.total - this.#start
    if (held + count <= this.#buffer.length) return
    let size = Math.max(firstSamples, this.#buffer.length)
    while (size < held + count) size *= 2
    const larger = new Int16Array(Math.min(size, this.limitSamples))
    larger.set(this.#buffer.subarray(0, held))
    this.#buffer = larger
  }
}
