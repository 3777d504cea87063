// Streaming conversion from 24 kHz to 16 kHz: from OpenAI's realtime protocol to the rate of the transcription models.
// The output does not depend on how the input is split. A second of audio is 0.8 M multiplications, 1 ms.
import { PolyphaseFilter } from "#domain/audio/PolyphaseFilter.ts"

/** Aliases are below −70 dB. */
const filter = new PolyphaseFilter(24_000, 16_000, { halfCrossings: 16, beta: 8, rollOff: 0.92 })

const toInt16 = (value: number): number => Math.max(-32_768, Math.min(32_767, Math.round(value)))

export class Downsampler {
  /** Input that later output still needs; zeros before the first sample. */
  private held: Int16Array = new Int16Array(filter.reach)
  /** Position of `held[0]` in the input. */
  private start = -filter.reach
  private made = 0

  /** Takes the next samples at 24 kHz and returns all samples at 16 kHz that they complete. */
  push(samples: Int16Array): Int16Array {
    const all = new Int16Array(this.held.length + samples.length)
    all.set(this.held)
    all.set(samples, this.held.length)
    const end = this.start + all.length
    const out: Array<number> = []
    while (filter.positionOf(this.made) + filter.reach < end)
      out.push(toInt16(filter.sampleAt(this.made++, all, this.start)))
    const needed = filter.positionOf(this.made) + 1 - filter.reach
    this.held = all.slice(needed - this.start)
    this.start = needed
    return Int16Array.from(out)
  }
}
