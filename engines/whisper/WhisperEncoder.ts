// Samples → encoder output: cuts the piece that is decoded at once, computes its features, and calls the encoder.
// Knows no tokens or text.
import * as Effect from "effect/Effect"
import { callFailed, type TranscribeRequest } from "../protocol/Engine.ts"
import { firstPiece } from "../shared/listening/QuietPoint.ts"
import { numeric } from "../shared/onnx/Tensors.ts"
import type { LoadedWhisper } from "./LoadedWhisper.ts"
import type { WhisperModel } from "./WhisperModel.ts"

/** Frames of padding after short audio for `variableLength` encoders; the demonstration model was measured with it. */
const tailFrames = 20
/** Such encoders downsample by four. */
const frameMultiple = 4

/**
 * Frames of silence after a caption's audio if the published weights get less than a window: 1 s. A guess: they were
 * trained with silence up to 30 s.
 */
const captionTailFrames = 100
/** Mel frames. Lengths of captions are rounded up to a multiple of this: 32 encoder outputs. */
const captionMultiple = 64

/** Mel frames of a caption with this many samples, at most those of a whole window. */
export const captionFrames = ({ features, windowSamples }: WhisperModel, samples: number): number => {
  const needed = Math.ceil(samples / features.hopSamples) + captionTailFrames
  const rounded = Math.ceil(needed / captionMultiple) * captionMultiple
  return Math.min(windowSamples / features.hopSamples, rounded)
}

const framesFor = (loaded: LoadedWhisper, samples: number, caption: boolean): number => {
  const { hopSamples } = loaded.model.features
  const all = loaded.model.windowSamples / hopSamples
  if (caption && loaded.shortAudio) return captionFrames(loaded.model, samples)
  if (!loaded.variableLength) return all
  const needed = Math.ceil(samples / hopSamples) + tailFrames
  return Math.min(all, Math.ceil(needed / frameMultiple) * frameMultiple)
}

/** Seconds before the end of the longest piece in which a quiet place is searched. */
const searchSeconds = 5

/** The part of a window that one call decodes. */
export const pieceOf = (loaded: LoadedWhisper, window: Float32Array, last: boolean): Float32Array => {
  const { rateHz } = loaded.model.features
  const samples = window.subarray(0, loaded.model.windowSamples)
  if (loaded.pieceSamples === undefined) return samples
  const searchSamples = searchSeconds * rateHz
  const whole = last && window.length === samples.length
  const options = { maxSamples: loaded.pieceSamples, searchSamples, rateHz, last: whole }
  return samples.subarray(0, firstPiece(samples, options))
}

/** `stream` identifies audio that grows, see TranscribeRequest. */
const featuresOf = (
  { mel, melMemory }: LoadedWhisper,
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
  loaded: LoadedWhisper,
  samples: Float32Array,
  { caption = false, stream }: Pick<TranscribeRequest, "caption" | "stream">,
) {
  const frames = framesFor(loaded, samples.length, caption)
  const features = featuresOf(loaded, samples, frames, stream)
  const { type } = loaded.encoder.inputs.get("input_features")!
  const tensor = numeric(type, features, [1, loaded.model.features.melBins, frames])
  if (tensor === undefined) {
    return yield* callFailed(`encoder takes ${type}`)
  }
  const outputs = yield* loaded.gate.withPermit(
    loaded.encoder.run({ input_features: tensor }, ["last_hidden_state"]),
  )
  return outputs.last_hidden_state!
})
