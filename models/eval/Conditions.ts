// Degrades clean speech before it is transcribed, and makes audio without speech. The same seed gives the same audio. Pure.

/** A small generator of random numbers (mulberry32), so that the audio is the same on every machine. */
export class RandomNumbers {
  #state: number
  constructor(seed: number) {
    this.#state = seed >>> 0
  }
  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  between(low: number, high: number): number {
    return low + (high - low) * this.next()
  }
  /** Nearly normal with deviation 1: the sum of twelve uniform numbers. */
  normal(): number {
    let sum = -6
    for (let i = 0; i < 12; i++) sum += this.next()
    return sum
  }
}

/** Root mean square of the samples, the measure of loudness here. */
const rms = (samples: Float32Array): number => {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / Math.max(1, samples.length))
}

/** Adds white noise at this signal-to-noise ratio in dB. */
export const withNoise = (samples: Float32Array, decibels: number, seed: number): Float32Array => {
  const random = new RandomNumbers(seed)
  const level = rms(samples) / 10 ** (decibels / 20)
  return samples.map((sample) => sample + random.normal() * level)
}

/** Adds reverberation that falls by 60 dB in this time and is half as loud as the direct sound. */
export const withReverberation = (
  samples: Float32Array,
  seconds: number,
  rateHz: number,
  seed: number,
): Float32Array => {
  const random = new RandomNumbers(seed)
  const length = Math.round(seconds * rateHz)
  const first = Math.round(0.004 * rateHz)
  const tail = Float32Array.from({ length }, (_, i) =>
    i < first ? 0 : random.normal() * Math.exp((-6.9 * i) / length),
  )
  // Only every eighth tap is applied: it sounds similar at an eighth of the cost.
  const taps = Array.from({ length: Math.floor((length - first) / 8) }, (_, k) => first + k * 8)
  const energy = taps.reduce((sum, at) => sum + (tail[at] ?? 0) ** 2, 0)
  const scale = 0.5 / Math.sqrt(energy)
  const out = Float32Array.from(samples)
  for (const at of taps) {
    const gain = (tail[at] ?? 0) * scale
    for (let i = at; i < out.length; i++) out[i] = out[i]! + gain * (samples[i - at] ?? 0)
  }
  return out
}

interface ClipWithoutSpeech {
  readonly kind: "silence" | "white noise" | "low noise" | "hum" | "tones" | "clicks"
  readonly samples: Float32Array
}

/** Clips without speech, of every kind at several levels and lengths. */
export const clipsWithoutSpeech = (rateHz: number): ReadonlyArray<ClipWithoutSpeech> => {
  const random = new RandomNumbers(7)
  const clip = (
    kind: ClipWithoutSpeech["kind"],
    seconds: number,
    at: (i: number) => number,
  ): ClipWithoutSpeech => ({
    kind,
    samples: Float32Array.from({ length: Math.round(seconds * rateHz) }, (_, i) => at(i)),
  })
  const radians = (hz: number) => (2 * Math.PI * hz) / rateHz
  const clips: Array<ClipWithoutSpeech> = []
  for (const seconds of [1, 3, 8, 20]) {
    clips.push(clip("silence", seconds, () => 0))
    for (const level of [0.001, 0.01, 0.1]) {
      let low = 0
      clips.push(clip("white noise", seconds, () => random.normal() * level))
      clips.push(
        clip("low noise", seconds, () => {
          low = 0.98 * low + 0.2 * random.normal() * level
          return low
        }),
      )
    }
    for (const hz of [50, 120]) clips.push(clip("hum", seconds, (i) => 0.1 * Math.sin(i * radians(hz))))
    const [pitch, every] = [random.between(300, 2000), Math.round(random.between(0.3, 0.8) * rateHz)]
    const beep = (i: number) => (i % every < 0.1 * rateHz ? 0.2 * Math.sin(i * radians(pitch)) : 0)
    clips.push(clip("tones", seconds, beep))
    clips.push(clip("clicks", seconds, (i) => (i % every < 20 ? random.between(-0.5, 0.5) : 0)))
  }
  return clips
}
