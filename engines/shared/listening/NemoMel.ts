// The log-mel features of NVIDIA NeMo's recognisers: pre-emphasis, symmetric Hann window centred in the FFT, power, Slaney filters,
// ln(x + 2^-24). Frame i is centred at sample i · hop. Any range of frames can be computed alone, with the same values as in a
// pass over all of the audio. Knows no tokens, requests or ONNX.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type MelFilter, melFilters } from "./MelFilters.ts"
import * as RealFft from "./RealFft.ts"

export interface NemoMelOptions {
  readonly melBins: number
  readonly rateHz: number
  readonly hopSamples: number
  readonly fftSize: number
  readonly windowSamples: number
  readonly preemphasis: number
}

interface NemoMel {
  readonly melBins: number
  /**
   * Frames `from` to `to` (exclusive) of the audio, time first: [to − from, melBins]. Samples before the first and behind the last one
   * are zero.
   */
  readonly frames: (samples: Float32Array, from: number, to: number) => Float32Array
}

const logGuard = 2 ** -24
const deviationGuard = 1e-5

const symmetricHann = (size: number): Float32Array =>
  Float32Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (size - 1)))

export const make = (options: NemoMelOptions): Effect.Effect<NemoMel, never, Scope.Scope> =>
  Effect.map(RealFft.make(options.fftSize), (fft) => {
    const { fftSize, melBins, rateHz } = options
    const window = symmetricHann(options.windowSamples)
    const filters = melFilters({ melBins, fftSize, rateHz })
    return {
      melBins,
      frames: (samples, from, to) => logMel(fft, window, filters, samples, from, to, options),
    }
  })

const logMel = (
  fft: RealFft.RealFft,
  window: Float32Array,
  filters: ReadonlyArray<MelFilter>,
  samples: Float32Array,
  from: number,
  to: number,
  { hopSamples, melBins, preemphasis }: NemoMelOptions,
): Float32Array => {
  const { input, output } = fft.views()
  const values = new Float32Array((to - from) * melBins)
  const power = new Float32Array(fft.size / 2 + 1)
  // The window is in the middle of the FFT frame, which is centred on its hop.
  const margin = (fft.size - window.length) / 2
  input.fill(0)
  for (let frame = from; frame < to; frame++) {
    const start = frame * hopSamples - fft.size / 2 + margin
    for (let i = 0; i < window.length; i++) {
      const at = start + i
      // Outside of the audio the emphasised signal is zero, also right behind its last sample.
      const sample = samples[at]
      const before = at === 0 ? 0 : samples[at - 1]
      input[margin + i] =
        sample === undefined || before === undefined ? 0 : (sample - preemphasis * before) * window[i]!
    }
    fft.transform()
    for (let bin = 0; bin < power.length; bin++) {
      power[bin] = output[2 * bin]! ** 2 + output[2 * bin + 1]! ** 2
    }
    for (let mel = 0; mel < filters.length; mel++) {
      const { firstBin, weights } = filters[mel]!
      let sum = 0
      for (let i = 0; i < weights.length; i++) sum += weights[i]! * power[firstBin + i]!
      values[(frame - from) * melBins + mel] = Math.log(sum + logGuard)
    }
  }
  return values
}

/** Brings each bin to mean 0 and deviation 1 over the first `validFrames` frames, in place; later frames become zero. */
export const normalise = (values: Float32Array, validFrames: number, melBins: number): void => {
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
