// Reference clips at any rate → the encoder's rate: band-limited interpolation with a Kaiser-windowed sinc, linear
// phase (the output is aligned with the input, no delay). Pure and deterministic: float64 sums in a fixed order.
// Called once a cloned request, with at most `MAX_CLIP_SECONDS` of audio.

/** Zero crossings on each side of the kernel. With β 9 the stop band lies under −90 dB (measured in the test). */
const HALF_CROSSINGS = 16
const KAISER_BETA = 9
/** Kernel entries a zero crossing; between them linear interpolation, error under −100 dB. */
const STEPS = 512
/** Pass band edge as a part of the lower Nyquist frequency; the rest is the kernel's transition. */
const ROLL_OFF = 0.9

const besselI0 = (x: number): number => {
  let sum = 1
  let term = 1
  for (let k = 1; k < 50; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}

const kernel = ((): Float64Array => {
  const table = new Float64Array(HALF_CROSSINGS * STEPS + 2)
  for (let i = 0; i < table.length; i++) {
    const x = i / STEPS
    const window = x >= HALF_CROSSINGS ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - (x / HALF_CROSSINGS) ** 2))
    const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)
    table[i] = (sinc * window) / besselI0(KAISER_BETA)
  }
  return table
})()

/** `samples` at `fromHz` → the same sound at `toHz`; `ceil(length × toHz / fromHz)` samples. */
export const resample = (samples: Float32Array, fromHz: number, toHz: number): Float32Array => {
  if (fromHz === toHz) return samples
  const ratio = toHz / fromHz
  const out = new Float32Array(Math.ceil(samples.length * ratio))
  // Of the input's sampling: going down, the kernel is stretched to the output's Nyquist frequency.
  const cutoff = Math.min(1, ratio) * ROLL_OFF
  const reach = HALF_CROSSINGS / cutoff
  for (let n = 0; n < out.length; n++) {
    const center = n / ratio
    const first = Math.max(0, Math.ceil(center - reach))
    const last = Math.min(samples.length - 1, Math.floor(center + reach))
    let sum = 0
    for (let k = first; k <= last; k++) {
      const at = Math.abs(k - center) * cutoff * STEPS
      const step = Math.floor(at)
      const low = kernel[step]!
      sum += samples[k]! * (low + (at - step) * (kernel[step + 1]! - low))
    }
    out[n] = sum * cutoff
  }
  return out
}
