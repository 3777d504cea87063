// Reference clips at any rate → the encoder's rate: a windowed sinc in as many phases as the two rates need, linear
// phase (the output is aligned with the input, no delay). Pure and deterministic: float64 sums in a fixed order.
// Called once a cloned request, with at most `MAX_CLIP_SECONDS` of audio.
import { kaiserSinc } from "#domain/audio/KaiserSinc.ts"

/** Zero crossings on each side of the kernel; with β 9 aliases lie under −80 dB (held by the test). */
const HALF_CROSSINGS = 16
const KAISER_BETA = 9
/** Pass band edge as a part of the lower Nyquist frequency; the rest is the kernel's transition. */
const ROLL_OFF = 0.9
/** Rates with an odd ratio would need up to 24,000 phases; the nearest of 1,024 is off by 1/2048 of a sample. */
const MAX_PHASES = 1024

const kernel = kaiserSinc(HALF_CROSSINGS, KAISER_BETA)

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

/** `samples` at `fromHz` → the same sound at `toHz`; `ceil(length × toHz / fromHz)` samples. Rates are integers. */
export const resample = (samples: Float32Array, fromHz: number, toHz: number): Float32Array => {
  if (fromHz === toHz) return samples
  const divisor = commonDivisor(fromHz, toHz)
  const up = toHz / divisor
  const down = fromHz / divisor
  const phases = Math.min(up, MAX_PHASES)
  // Of the input's sampling: going down, the kernel is stretched to the output's Nyquist frequency.
  const cutoff = Math.min(1, up / down) * ROLL_OFF
  const reach = Math.ceil(HALF_CROSSINGS / cutoff)
  const taps = 2 * reach
  // Row p: weights of the input samples 1 − reach … reach around a point p / phases after a sample.
  const weights = new Float64Array(phases * taps)
  for (let p = 0; p < phases; p++) {
    for (let k = 0; k < taps; k++)
      weights[p * taps + k] = cutoff * kernel((k + 1 - reach - p / phases) * cutoff)
  }
  const out = new Float32Array(Math.ceil((samples.length * up) / down))
  for (let n = 0; n < out.length; n++) {
    let whole = Math.floor((n * down) / up)
    let phase = Math.round((((n * down) % up) * phases) / up)
    if (phase === phases) {
      phase = 0
      whole++
    }
    const start = whole + 1 - reach
    const row = phase * taps
    const from = Math.max(0, -start)
    const to = Math.min(taps, samples.length - start)
    let sum = 0
    for (let k = from; k < to; k++) sum += samples[start + k]! * weights[row + k]!
    out[n] = sum
  }
  return out
}
