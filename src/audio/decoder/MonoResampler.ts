// Converts decoded frames of any layout to mono f32 at one rate, in whole chunks. Runs in the decoder process only.
// Bounded memory: one chunk, and one scratch buffer of a frame's size.
import { AV_SAMPLE_FMT_FLT } from "node-av/constants"
import { avChannelLayoutDefault, type Frame, SoftwareResampleContext } from "node-av/lib"
import { CHUNK_SAMPLES, type RejectReason } from "./DecoderWire.ts"

/** A refused file, and why. */
export class Rejected extends Error {
  readonly reason: RejectReason
  constructor(reason: RejectReason, detail: string) {
    super(detail)
    this.reason = reason
  }
}

/**
 * Telephone speech has 8 kHz. Below 4 kHz a forged header could multiply the output (a 32 KB WAV at 1 Hz is 4.5 hours).
 */
const MIN_RATE_HZ = 4_000
/** The highest rate of any recorder. Higher rates would need filters of unbounded memory. */
const MAX_RATE_HZ = 768_000
const MAX_CHANNELS = 32
/** Rounding of `getOutSamples`. A guess on the safe side. */
const SPARE_SAMPLES = 64
/** AV_CHANNEL_ORDER_UNSPEC: a channel count without positions, as in many WAV files. */
const ORDER_UNSPECIFIED = 0

export const checkLayout = (rateHz: number, channels: number): void => {
  if (rateHz < MIN_RATE_HZ || rateHz > MAX_RATE_HZ) {
    throw new Rejected("UnsupportedLayout", `A sample rate of ${rateHz} Hz is not supported`)
  }
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw new Rejected("UnsupportedLayout", `${channels} channels are not supported`)
  }
}

export class MonoResampler {
  readonly #rateHz: number
  readonly #maxSamples: number
  readonly #emit: (samples: Float32Array) => Promise<void> | undefined
  #context: SoftwareResampleContext | undefined
  #input = ""
  #scratch = Buffer.alloc(0)
  #chunk = new Float32Array(CHUNK_SAMPLES)
  #filled = 0
  #samples = 0

  constructor(
    rateHz: number,
    maxSamples: number,
    emit: (samples: Float32Array) => Promise<void> | undefined,
  ) {
    this.#rateHz = rateHz
    this.#maxSamples = maxSamples
    this.#emit = emit
  }

  get samples(): number {
    return this.#samples
  }

  /** Takes one decoded frame. Waits for the reader when a chunk is full. */
  async push(frame: Frame): Promise<void> {
    // The parameters of chained streams and joined files may change in the middle.
    const input = `${frame.sampleRate} ${frame.format} ${frame.channels}`
    if (this.#context === undefined || input !== this.#input) {
      await this.#flush()
      this.#context = this.#open(frame)
      this.#input = input
    }
    const capacity = this.#context.getOutSamples(frame.nbSamples) + SPARE_SAMPLES
    const count = this.#context.convertSync(
      this.#bufferFor(capacity),
      capacity,
      frame.extendedData,
      frame.nbSamples,
    )
    if (count > 0) await this.#deliver(count)
  }

  /** Emits what the filter and the chunk still hold. */
  async end(): Promise<void> {
    await this.#flush()
    if (this.#filled > 0) await this.#emit(this.#chunk.slice(0, this.#filled))
  }

  free(): void {
    this.#context?.free()
    this.#context = undefined
  }

  #open(frame: Frame): SoftwareResampleContext {
    checkLayout(frame.sampleRate, frame.channels)
    const layout = frame.channelLayout
    const context = new SoftwareResampleContext()
    context.allocSetOpts2(
      avChannelLayoutDefault(1),
      AV_SAMPLE_FMT_FLT,
      this.#rateHz,
      layout.order === ORDER_UNSPECIFIED ? avChannelLayoutDefault(frame.channels) : layout,
      frame.format as typeof AV_SAMPLE_FMT_FLT,
      frame.sampleRate,
    )
    if (context.init() < 0) {
      context.free()
      throw new Rejected("UnsupportedLayout", "The channel layout is not supported")
    }
    return context
  }

  async #flush(): Promise<void> {
    if (this.#context === undefined) return
    const capacity = this.#context.getOutSamples(0) + SPARE_SAMPLES
    const count = this.#context.convertSync(this.#bufferFor(capacity), capacity, null, 0)
    this.free()
    if (count > 0) await this.#deliver(count)
  }

  #bufferFor(samples: number): Array<Buffer> {
    const sizeBytes = samples * Float32Array.BYTES_PER_ELEMENT
    if (this.#scratch.length < sizeBytes) this.#scratch = Buffer.from(new ArrayBuffer(sizeBytes))
    return [this.#scratch]
  }

  async #deliver(count: number): Promise<void> {
    const floats = new Float32Array(this.#scratch.buffer, this.#scratch.byteOffset, count)
    for (let at = 0; at < count; ) {
      const take = Math.min(CHUNK_SAMPLES - this.#filled, count - at)
      this.#chunk.set(floats.subarray(at, at + take), this.#filled)
      this.#filled += take
      at += take
      this.#samples += take
      if (this.#samples > this.#maxSamples) {
        throw new Rejected("TooLong", `The audio is longer than ${this.#maxSamples / this.#rateHz} seconds`)
      }
      if (this.#filled === CHUNK_SAMPLES) {
        const full = this.#chunk
        this.#chunk = new Float32Array(CHUNK_SAMPLES)
        this.#filled = 0
        await this.#emit(full)
      }
    }
  }
}
