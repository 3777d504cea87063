// Samples → the log-mel features of a Whisper encoder. Called by the Whisper engine once a window; it must not know
// tokens, requests or ONNX. Frames behind the end of the audio are filled in without computing them.
//
// Source: the published feature extractor: 16 kHz, n_fft 400, hop 160, periodic Hann, centred with reflection,
// power spectrum, last frame dropped, Slaney mel filters to 8 kHz, log10 floored at 8 below the maximum of the
// window (not of the file: a closed window must not change when later audio arrives), (x + 4) / 4.
import { Effect, type Scope } from "effect"
import { type MelFilter, melFilters } from "../shared/listening/MelFilters.ts"
import * as RealFft from "../shared/listening/RealFft.ts"

export interface LogMelOptions {
  readonly melBins: number
  readonly fftSize: number
  readonly hopSamples: number
  readonly rateHz: number
}

export interface LogMel {
  readonly options: LogMelOptions
  /** `samples` zero-padded or cut to `frames * hopSamples` → float32 [melBins, frames], row-major. */
  readonly compute: (samples: Float32Array, frames: number) => Float32Array
}

const POWER_FLOOR = 1e-10
const LOG_POWER_FLOOR = -10
const DYNAMIC_RANGE = 8

const periodicHann = (size: number): Float32Array =>
  Float32Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size))

export const make = (options: LogMelOptions): Effect.Effect<LogMel, never, Scope.Scope> =>
  Effect.map(RealFft.make(options.fftSize), (fft) => {
    const { melBins, fftSize, hopSamples, rateHz } = options
    const window = periodicHann(fftSize)
    const filters = melFilters({ melBins, fftSize, rateHz, lowHz: 0, highHz: rateHz / 2 })
    const compute = (samples: Float32Array, frames: number) => {
      const padded = reflectPadded(samples, frames * hopSamples, fftSize / 2)
      const heard = framesWithAudio(samples.length, frames, options)
      const features = new Float32Array(melBins * frames).fill(LOG_POWER_FLOOR)
      logPowers(fft, window, filters, padded, hopSamples, heard, frames, features)
      return normalise(features)
    }
    return { options, compute }
  })

/** Frames whose centred window touches the audio or its reflection; the others are silence. */
const framesWithAudio = (length: number, frames: number, options: LogMelOptions): number =>
  Math.min(frames, Math.ceil((length + options.fftSize / 2) / options.hopSamples))

/** `samples` brought to `total` samples, with `margin` mirrored samples on either side. */
const reflectPadded = (samples: Float32Array, total: number, margin: number): Float32Array => {
  const padded = new Float32Array(total + 2 * margin)
  padded.set(samples.subarray(0, total), margin)
  for (let i = 1; i <= margin; i++) {
    padded[margin - i] = padded[margin + i]!
    padded[margin + total - 1 + i] = padded[margin + total - 1 - i]!
  }
  return padded
}

/** Writes log10 mel powers of the first `heard` frames into `features` [mel, frames]. */
const logPowers = (
  fft: RealFft.RealFft,
  window: Float32Array,
  filters: ReadonlyArray<MelFilter>,
  padded: Float32Array,
  hop: number,
  heard: number,
  frames: number,
  features: Float32Array,
): void => {
  const { input, output } = fft.views()
  const size = fft.size
  const power = new Float32Array(size / 2 + 1)
  for (let frame = 0; frame < heard; frame++) {
    const start = frame * hop
    for (let i = 0; i < size; i++) input[i] = padded[start + i]! * window[i]!
    fft.transform()
    for (let bin = 0; bin < power.length; bin++) {
      const re = output[2 * bin]!
      const im = output[2 * bin + 1]!
      power[bin] = re * re + im * im
    }
    for (let mel = 0; mel < filters.length; mel++) {
      const { firstBin, weights } = filters[mel]!
      let sum = 0
      for (let i = 0; i < weights.length; i++) sum += weights[i]! * power[firstBin + i]!
      if (sum > POWER_FLOOR) features[mel * frames + frame] = Math.log10(sum)
    }
  }
}

const normalise = (features: Float32Array): Float32Array => {
  let max = LOG_POWER_FLOOR
  for (const value of features) if (value > max) max = value
  const floor = max - DYNAMIC_RANGE
  for (let i = 0; i < features.length; i++) features[i] = (Math.max(features[i]!, floor) + 4) / 4
  return features
}
