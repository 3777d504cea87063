// Streaming conversion from 24 kHz to 16 kHz: from OpenAI's realtime protocol to the rate of the transcription models.
// A windowed sinc, linear phase, aligned with the input. The output does not depend on how the input is split. A second
// of audio is 0.8 M multiplications, 1 ms.
import { kaiserSinc } from "#domain/audio/KaiserSinc.ts"

/** Zero crossings on each side of the kernel; with β 8 aliases are below −70 dB. */
const HALF_CROSSINGS = 16
const KAISER_BETA = 8
/** Edge of the pass band, as a fraction of the lower Nyquist frequency (8 kHz). */
const ROLL_OFF = 0.92
/** Three input samples give two output samples. */
const UP = 2
const DOWN = 3
const CUTOFF = (UP / DOWN) * ROLL_OFF
const REACH = Math.ceil(HALF_CROSSINGS / CUTOFF)
const TAPS = 2 * REACH

const kernel = kaiserSinc(HALF_CROSSINGS, KAISER_BETA)

/** Row p: weights of the input samples 1 − REACH … REACH around a point p / 2 after a sample. */
const weights = Array.from({ length: UP }, (_, phase) =>
  Float64Array.from({ length: TAPS }, (_, k) => CUTOFF * kernel((k + 1 - REACH - phase / UP) * CUTOFF)),
)

export class Downsampler {
  /** Input that later output still needs; zeros before the first sample. */
  private held: Int16Array = new Int16Array(REACH)
  /** Position of `held[0]` in the input. */
  private start = -REACH
  private made = 0

  /** Takes the next samples at 24 kHz and returns all samples at 16 kHz that they complete. */
  push(samples: Int16Array): Int16Array {
    const all = new Int16Array(this.held.length + samples.length)
    all.set(this.held)
    all.set(samples, this.held.length)
    const end = this.start + all.length
    const out: Array<number> = []
    for (;;) {
      const whole = Math.floor((this.made * DOWN) / UP)
      if (whole + REACH >= end) break
      const row = weights[(this.made * DOWN) % UP]!
      const from = whole + 1 - REACH - this.start
      let sum = 0
      for (let k = 0; k < TAPS; k++) sum += row[k]! * all[from + k]!
      out.push(Math.max(-32_768, Math.min(32_767, Math.round(sum))))
      this.made++
    }
    const needed = Math.floor((this.made * DOWN) / UP) + 1 - REACH
    this.held = all.slice(needed - this.start)
    this.start = needed
    return Int16Array.from(out)
  }
}
