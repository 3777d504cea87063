// Converts frames that node-av has decoded, of any layout, to mono f32 at one rate. Runs in the decoder process only.
// Bounded memory: one scratch buffer of a frame's size.
import { AV_SAMPLE_FMT_FLT } from "node-av/constants"
import { avChannelLayoutDefault, type Frame, SoftwareResampleContext } from "node-av/lib"
import { checkLayout, unmixable } from "./Rejected.ts"
import type { SampleChunks } from "./SampleChunks.ts"

/** Rounding of `getOutSamples`. A guess on the safe side. */
const spareSamples = 64
/** AV_CHANNEL_ORDER_UNSPEC: a channel count without positions, as in many WAV files. */
const orderUnspecified = 0

export class MonoResampler {
  readonly #rateHz: number
  readonly #chunks: SampleChunks
  #context: SoftwareResampleContext | undefined
  #input = ""
  #scratch = Buffer.alloc(0)

  constructor(rateHz: number, chunks: SampleChunks) {
    this.#rateHz = rateHz
    this.#chunks = chunks
  }

  /** Takes one decoded frame. Waits for the reader when a chunk is full. */
  async push(frame: Frame): Promise<void> {
    // The parameters of chained streams and joined files may change in the middle.
    const input = `${frame.sampleRate} ${frame.format} ${frame.channels}`
    if (this.#context === undefined || input !== this.#input) {
      await this.flush()
      this.#context = this.#open(frame)
      this.#input = input
    }
    const capacity = this.#context.getOutSamples(frame.nbSamples) + spareSamples
    const count = this.#context.convertSync(
      this.#bufferFor(capacity),
      capacity,
      frame.extendedData,
      frame.nbSamples,
    )
    if (count > 0) await this.#deliver(count)
  }

  /** Delivers what the filter still holds. */
  async flush(): Promise<void> {
    if (this.#context === undefined) return
    const capacity = this.#context.getOutSamples(0) + spareSamples
    const count = this.#context.convertSync(this.#bufferFor(capacity), capacity, null, 0)
    this.free()
    if (count > 0) await this.#deliver(count)
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
      layout.order === orderUnspecified ? avChannelLayoutDefault(frame.channels) : layout,
      frame.format as typeof AV_SAMPLE_FMT_FLT,
      frame.sampleRate,
    )
    if (context.init() < 0) {
      context.free()
      throw unmixable()
    }
    return context
  }

  #bufferFor(samples: number): Array<Buffer> {
    const sizeBytes = samples * Float32Array.BYTES_PER_ELEMENT
    if (this.#scratch.length < sizeBytes) this.#scratch = Buffer.from(new ArrayBuffer(sizeBytes))
    return [this.#scratch]
  }

  #deliver(samples: number): Promise<void> {
    return this.#chunks.take(this.#scratch.subarray(0, samples * Float32Array.BYTES_PER_ELEMENT))
  }
}
