// Samples → the features of a Cohere Transcribe encoder, once a piece. Knows no tokens, requests or ONNX.
//
// Source: the published feature extractor: deterministic dither, then NeMo's log-mel features (window of 400 in an FFT of 512,
// hop 160, 128 filters to 8 kHz), each mel bin brought to mean 0 and deviation 1 over the valid frames.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as NemoMel from "../shared/listening/NemoMel.ts"
import { seededRandom } from "../shared/listening/Sampling.ts"

export interface CohereFeatureOptions extends NemoMel.NemoMelOptions {
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

export const make = (options: CohereFeatureOptions): Effect.Effect<CohereFeatures, never, Scope.Scope> =>
  Effect.map(NemoMel.make(options), (mel) => ({
    compute: (samples) => {
      const validFrames = Math.floor(samples.length / options.hopSamples)
      const frames = validFrames + 1
      const values = mel.frames(dithered(samples, options.dither), 0, frames)
      NemoMel.normalise(values, validFrames, options.melBins)
      return { values, frames, validFrames }
    },
  }))

/** Adds noise that depends only on the number of samples. */
const dithered = (samples: Float32Array, dither: number): Float32Array => {
  if (dither <= 0) return samples
  const random = seededRandom(samples.length)
  // Box–Muller; 1 − u keeps the logarithm's argument above 0.
  const gauss = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return samples.map((sample) => sample + dither * gauss())
}
