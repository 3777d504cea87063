// How loud audio is in each of 32 bands, every 10 ms: what the voice-activity detector and the echo detector look at. Pure; state is
// the newest 25 ms. The same numbers as models/train/turns/features.py.
import { fftSize, powerSpectrum } from "./PowerSpectrum.ts"

/** Samples a second; the rate of the transcription models. */
const rateHz = 16_000
/** Samples of a hop: 10 ms. */
export const hopSamples = rateHz / 100
export const hopMs = 10
export const bandCount = 32

/** Each measurement looks at the newest 25 ms. */
const windowSamples = 400
/** Below -90 dBFS everything is silence. Power of samples in [-1, 1]. */
const floor = 1e-9

const hann = Float32Array.from(
  { length: windowSamples },
  (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / windowSamples),
)
const scale = 1 / hann.reduce((sum, value) => sum + value * value, 0)

interface Band {
  readonly firstBin: number
  readonly weights: Float32Array
}

const mel = (hz: number): number => 2595 * Math.log10(1 + hz / 700)
const hertz = (mels: number): number => 700 * (10 ** (mels / 2595) - 1)

/** Triangles from 60 to 7,600 Hz, evenly spaced in mel, the weights of each of sum 1. */
const bands: ReadonlyArray<Band> = Array.from({ length: bandCount }, (_, band) => {
  const edge = (i: number) => hertz(mel(60) + ((mel(7_600) - mel(60)) * i) / (bandCount + 1))
  const [low, middle, high] = [edge(band), edge(band + 1), edge(band + 2)] as const
  const all = Array.from({ length: fftSize / 2 + 1 }, (_, bin) => {
    const hz = (bin * rateHz) / fftSize
    return Math.max(0, Math.min((hz - low) / (middle - low), (high - hz) / (high - middle)))
  })
  const sum = all.reduce((total, weight) => total + weight, 0)
  const firstBin = all.findIndex((weight) => weight > 0)
  const weights = all.filter((weight) => weight > 0).map((weight) => (weight * scale) / sum)
  return { firstBin, weights: Float32Array.from(weights) }
})

const padded = new Float32Array(fftSize)
const power = new Float32Array(fftSize / 2 + 1)

export class BandEnergies {
  readonly #newest = new Float32Array(windowSamples)

  /**
   * @param samples s16 at 16 kHz with a hop from `at` on
   * @param energies of length bandCount: receives the log10 of each band's mean power, -9 to about 0
   */
  measure(samples: Int16Array, at: number, energies: Float32Array): void {
    const newest = this.#newest
    newest.copyWithin(0, hopSamples)
    for (let i = 0; i < hopSamples; i++) {
      newest[windowSamples - hopSamples + i] = samples[at + i]! / 32_768
    }
    for (let i = 0; i < windowSamples; i++) padded[i] = newest[i]! * hann[i]!
    powerSpectrum(padded, power)
    for (let band = 0; band < bandCount; band++) {
      const { firstBin, weights } = bands[band]!
      let sum = floor
      for (let i = 0; i < weights.length; i++) sum += weights[i]! * power[firstBin + i]!
      energies[band] = Math.log(sum) * Math.LOG10E
    }
  }
}
