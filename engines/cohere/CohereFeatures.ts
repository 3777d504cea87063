// Samples → the features of a Cohere Transcribe encoder, once a piece. Knows no tokens, requests or ONNX.
//
// Source: the published feature extractor: deterministic dither, pre-emphasis, symmetric Hann of 400 centred in an
// FFT of 512, hop 160, zero padding at both ends, power, 128 Slaney filters to 8 kHz, ln(x + 2^-24), then each mel
// bin brought to mean 0 and deviation 1 over the valid frames.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type MelFilter, melFilters } from "../shared/listening/MelFilters.ts"
import * as RealFft from "../shared/listening/RealFft.ts"
import { seededRandom } from "../shared/listening/Sampling.ts"

export interface CohereFeatureOptions {
  readonly melBins: number
  readonly rateHz: number
  readonly hopSamples: number
  readonly fftSize: number
  readonly windowSamples: number
  readonly preemphasis: number
  /** Standard deviation of the added noise; 0 for none. */
  readonly dither: number
}

interface Features {
  /** Float32 [frames, melBins], time first; frames behind `validFrames` are zero. */
  readonly values: Float32Array
  readonly frames: number
  readonly validFrames: number
}

export interface CohereFeatures {
  readonly compute: (samples: Float32Array) => Features
}

const logGuard = 2 ** -24
const deviationGuard = 1e-5

export const make = (options: CohereFeatureOptions): Effect.Effect<CohereFeatures, never, Scope.Scope> =>
  Effect.map(RealFft.make(options.fftSize), (fft) => {
    const { melBins, fftSize, rateHz } = options
    const window = symmetricHann(options.windowSamples)
    const filters = melFilters({ melBins, fftSize, rateHz, lowHz: 0, highHz: rateHz / 2 })
    return {
      compute: (samples) => {
        const validFrames = Math.floor(samples.length / options.hopSamples)
        const frames = validFrames + 1
        const values = logMel(fft, window, filters, emphasised(samples, options), frames, options)
        normalise(values, validFrames, melBins)
        return { values, frames, validFrames }
      },
    }
  })

const symmetricHann = (size: number): Float32Array =>
  Float32Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (size - 1)))

/** Adds dither noise that depends only on the number of samples, then y[n] = x[n] − p·x[n−1]. */
const emphasised = (samples: Float32Array, { dither, preemphasis }: CohereFeatureOptions): Float32Array => {
  const random = seededRandom(samples.length)
  // Box–Muller; 1 − u keeps the logarithm's argument above 0.
  const gauss = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const noisy = dither > 0 ? samples.map((sample) => sample + dither * gauss()) : samples
  return noisy.map((sample, i) => sample - (i === 0 ? 0 : preemphasis * noisy[i - 1]!))
}

const logMel = (
  fft: RealFft.RealFft,
  window: Float32Array,
  filters: ReadonlyArray<MelFilter>,
  samples: Float32Array,
  frames: number,
  { hopSamples, melBins }: CohereFeatureOptions,
): Float32Array => {
  const { input, output } = fft.views()
  const values = new Float32Array(frames * melBins)
  const power = new Float32Array(fft.size / 2 + 1)
  // The window is in the middle of the FFT frame, which is centred on its hop.
  const margin = (fft.size - window.length) / 2
  for (let frame = 0; frame < frames; frame++) {
    const start = frame * hopSamples - fft.size / 2 + margin
    input.fill(0)
    for (let i = 0; i < window.length; i++) input[margin + i] = (samples[start + i] ?? 0) * window[i]!
    fft.transform()
    for (let bin = 0; bin < power.length; bin++) {
      power[bin] = output[2 * bin]! ** 2 + output[2 * bin + 1]! ** 2
    }
    filters.forEach(({ firstBin, weights }, mel) => {
      let sum = 0
      for (let i = 0; i < weights.length; i++) sum += weights[i]! * power[firstBin + i]!
      values[frame * melBins + mel] = Math.log(sum + logGuard)
    })
  }
  return values
}

/** Normalises in place; frames after the valid ones become zero. */
const normalise = (values: Float32Array, validFrames: number, melBins: number): void => {
  for (let mel = 0; mel < melBins; mel++) {
    let mean = 0
    for (let frame = 0; frame < validFrames; frame++) mean += values[frame * melBins + mel]!
    mean /= Math.max(1, validFrames)
    let squares = 0
    for (let frame = 0; frame < validFrames; frame++) squares += (values[frame * melBins + mel]! - mean) ** 2
    // The deviation of a single frame is undefined.
    const deviation = Math.sqrt(squares / Math.max(1, validFrames - 1)) + deviationGuard
    for (let frame = 0; frame < validFrames; frame++) {
      values[frame * melBins + mel] = (values[frame * melBins + mel]! - mean) / deviation
    }
  }
  values.fill(0, validFrames * melBins)
}
