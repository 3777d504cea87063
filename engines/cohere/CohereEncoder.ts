// Samples → the encoder output of a Cohere Transcribe export: features and one native call through the engine's
// gate, once a piece. The encoder takes any length, so short audio costs less.
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import { Tensor } from "onnxruntime-node"
import { callFailed, type EngineError } from "../protocol/Engine.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { int64, numeric } from "../shared/onnx/Tensors.ts"
import type { CohereFeatures } from "./CohereFeatures.ts"

export type CohereEncoder = (samples: Float32Array) => Effect.Effect<Tensor, EngineError>

export const make = Effect.fnUntraced(function* (
  session: OnnxSession.OnnxSession,
  gate: Semaphore.Semaphore,
  features: CohereFeatures,
  melBins: number,
) {
  const input = yield* OnnxSession.inputNamed(session, ["input_features"])
  const output = yield* OnnxSession.outputNamed(session, ["last_hidden_state"])
  const mask = session.inputs.get("attention_mask")
  const encode: CohereEncoder = Effect.fnUntraced(function* (samples) {
    const { values, frames, validFrames } = features.compute(samples)
    const tensor = numeric(input.type, values, [1, frames, melBins])
    if (tensor === undefined) {
      return yield* callFailed(`encoder takes ${input.type}`)
    }
    const feeds: Record<string, Tensor> = { [input.name]: tensor }
    if (mask !== undefined) feeds[mask.name] = maskOf(mask.type, frames, validFrames)
    const outputs = yield* gate.withPermit(session.run(feeds, [output.name]))
    return outputs[output.name]!
  })
  return encode
})

/** 1 for frames that contain audio, 0 for padding. */
const maskOf = (type: Tensor.Type, frames: number, validFrames: number): Tensor => {
  const values = Array.from({ length: frames }, (_, frame) => (frame < validFrames ? 1 : 0))
  return type === "bool"
    ? new Tensor("bool", Uint8Array.from(values), [1, frames])
    : int64(values, [1, frames])
}
