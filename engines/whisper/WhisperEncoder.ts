// Samples → encoder output: how much of a window is decoded at once, its features, and the encoder's native call.
// Called by Transcribe once a window; it must not know tokens or text.
import * as Effect from "effect/Effect"
import { EngineError } from "../Engine.ts"
import { firstPiece } from "../shared/listening/QuietPoint.ts"
import { numeric } from "../shared/onnx/Tensors.ts"
import type { Loaded } from "./Transcribe.ts"

/** Padding behind short audio for `variableLength` encoders, frames; the demonstration model was measured with it. */
const TAIL_FRAMES = 20
/** Such encoders downsample by four. */
const FRAME_MULTIPLE = 4

const framesFor = (loaded: Loaded, samples: number): number => {
  const { hopSamples } = loaded.model.features
  const all = loaded.model.windowSamples / hopSamples
  if (!loaded.variableLength) return all
  const needed = Math.ceil(samples / hopSamples) + TAIL_FRAMES
  return Math.min(all, Math.ceil(needed / FRAME_MULTIPLE) * FRAME_MULTIPLE)
}

/** How far back from the end of the longest piece a quiet place is looked for. */
const SEARCH_SECONDS = 5

/** The part of a window that is decoded by one call. */
export const pieceOf = (loaded: Loaded, window: Float32Array, last: boolean): Float32Array => {
  const { rateHz } = loaded.model.features
  const samples = window.subarray(0, loaded.model.windowSamples)
  if (loaded.pieceSamples === undefined) return samples
  const searchSamples = SEARCH_SECONDS * rateHz
  const whole = last && window.length === samples.length
  const options = { maxSamples: loaded.pieceSamples, searchSamples, rateHz, last: whole }
  return samples.subarray(0, firstPiece(samples, options))
}

/** `stream` names audio that grows, see TranscribeRequest. */
const featuresOf = (
  { mel, melMemory }: Loaded,
  samples: Float32Array,
  frames: number,
  stream: number | undefined,
): Float32Array => {
  if (stream === undefined) return mel.compute(samples, frames)
  const { features, known } = mel.extend(samples, frames, melMemory.take(stream))
  melMemory.keep(stream, known)
  return features
}

export const encode = Effect.fnUntraced(function* (
  loaded: Loaded,
  samples: Float32Array,
  stream: number | undefined,
) {
  const frames = framesFor(loaded, samples.length)
  const features = featuresOf(loaded, samples, frames, stream)
  const { type } = loaded.encoder.inputs.get("input_features")!
  const tensor = numeric(type, features, [1, loaded.model.features.melBins, frames])
  if (tensor === undefined) {
    return yield* new EngineError({ reason: "Failed", field: "", detail: `encoder takes ${type}` })
  }
  const outputs = yield* loaded.gate.withPermit(
    loaded.encoder.run({ input_features: tensor }, ["last_hidden_state"]),
  )
  return outputs.last_hidden_state!
})
