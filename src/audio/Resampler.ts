// Streaming conversion between two rates: from those of OpenAI's realtime protocol to that of the transcription models, and from
// speech to G.711. The output does not depend on how the input is split. A second from 24 to 16 kHz is 0.8 M multiplications, 1 ms.
import { PolyphaseFilter } from "#domain/audio/PolyphaseFilter.ts"

/** Aliases are below −70 dB. */
const shape = { halfCrossings: 16, beta: 8, rollOff: 0.92 }

/** One for each pair of rates: making it takes longer than a frame of audio. */
const filters = new Map<string, PolyphaseFilter>()

const filterOf = (fromHz: number, toHz: number): PolyphaseFilter => {
  const key = `${fromHz}:${toHz}`
  const filter = filters.get(key) ?? new PolyphaseFilter(fromHz, toHz, shape)
  filters.set(key, filter)
  return filter
}

const toInt16 = (value: number): number => Math.max(-32_768, Math.min(32_767, Math.round(value)))

export class Resampler {
  readonly #filter: PolyphaseFilter
  /** Input that later output still needs; zeros before the first sample. */
  #held: Float64Array
  /** Position of `held[0]` in the input. */
  #start: number
  #made = 0

  /** Rates in Hz. */
  constructor(fromHz: number, toHz: number) {
    this.#filter = filterOf(fromHz, toHz)
    this.#held = new Float64Array(this.#filter.reach)
    this.#start = -this.#filter.reach
  }

  /** Takes the next samples and returns all samples of the other rate that they complete. */
  push(samples: Int16Array): Int16Array {
    const filter = this.#filter
    const all = new Float64Array(this.#held.length + samples.length)
    all.set(this.#held)
    all.set(samples, this.#held.length)
    const end = this.#start + all.length
    // Those whose `positionOf(n) + reach` is before the end.
    const behind = Math.ceil(((end - filter.reach) * filter.up) / filter.down)
    const sums = new Float64Array(Math.max(0, behind - this.#made))
    filter.fill(this.#made, all, this.#start, sums)
    this.#made += sums.length
    const needed = filter.positionOf(this.#made) + 1 - filter.reach
    this.#held = all.slice(needed - this.#start)
    this.#start = needed
    const out = new Int16Array(sums.length)
    for (let i = 0; i < out.length; i++) out[i] = toInt16(sums[i]!)
    return out
  }
}
