// The detection engine for Smart Turn 3 (adapter "smart-turn-onnx"): the probability that a speaker's turn is complete, from its sound.
//
// From the published code: the last 8 s of 16 kHz audio, zeros before it where the turn is shorter, brought to mean 0 and deviation 1 over all
// 128,000 samples; Whisper's log-mel features of them, `input_features` [batch, 80, 800]; `logits` [batch, 1], which is a probability already,
// for all that its name says.
//
// Role in the catalog entry: `model`.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { turnEndSamples } from "../protocol/Detection.ts"
import {
  callFailed,
  type DetectEnd,
  type DetectionEngine,
  type DetectRequest,
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  loadFailed,
  type Outlet,
} from "../protocol/Engine.ts"
import { decodeOptions, fileOf } from "../shared/files/EngineSpecFiles.ts"
import * as LogMel from "../shared/listening/LogMel.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { numeric, toFloat32 } from "../shared/onnx/Tensors.ts"
import { DetectionOptions } from "./Options.ts"

const melBins = 80
const hopSamples = 160
const frames = turnEndSamples / hopSamples
/** Added to the variance, as published. */
const smallVariance = 1e-7

interface Graph {
  readonly session: OnnxSession.OnnxSession
  readonly input: OnnxSession.TensorInfo
  readonly mel: LogMel.LogMel
}

/** The newest 8 s with zeros before them, at mean 0 and deviation 1. */
export const turnWindow = (samples: Int16Array): Float32Array => {
  const heard = s16ToF32(samples.subarray(Math.max(0, samples.length - turnEndSamples)))
  const window = new Float32Array(turnEndSamples)
  window.set(heard, turnEndSamples - heard.length)
  let sum = 0
  for (const sample of heard) sum += sample
  const mean = sum / turnEndSamples
  let squares = (turnEndSamples - heard.length) * mean * mean
  for (const sample of heard) squares += (sample - mean) ** 2
  const scale = 1 / Math.sqrt(squares / turnEndSamples + smallVariance)
  for (let i = 0; i < window.length; i++) window[i] = (window[i]! - mean) * scale
  return window
}

const score = Effect.fnUntraced(function* (
  { input, mel, session }: Graph,
  samples: Int16Array,
): Effect.fn.Return<Float32Array, EngineError> {
  const features = numeric(input.type, mel.compute(turnWindow(samples), frames), [1, melBins, frames])
  if (features === undefined) return yield* callFailed(`${session.file} takes ${input.type}`)
  const scores = toFloat32((yield* session.run({ [input.name]: features }, ["logits"])).logits!)
  if (scores.length !== 1)
    return yield* callFailed(`${session.file} gave ${scores.length} values for one turn`)
  return Float32Array.of(scores[0]!)
})

const detect = Effect.fnUntraced(function* (
  graph: Graph,
  { pieces }: DetectRequest,
  out: Outlet<"detection">,
): Effect.fn.Return<DetectEnd, EngineError> {
  out.started({ pieces: pieces.length })
  // One at a time: a call takes as many times longer as it has turns, and the first would wait for the last.
  for (const { samples } of pieces) out.push({ scores: yield* score(graph, samples) })
  return { pieces: pieces.length }
})

const opened = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<Graph, EngineError, Scope.Scope> {
  const path = yield* fileOf(spec, "model")
  const session = yield* OnnxSession.open(path, yield* optionsOf(spec))
  const { file } = session
  const input = yield* OnnxSession.inputNamed(session, ["input_features"])
  yield* OnnxSession.outputNamed(session, ["logits"])
  if (session.inputs.size > 1)
    return yield* loadFailed(
      "model",
      `${file} wants ${[...session.inputs.keys()].join(", ")}: it is no Smart Turn 3`,
    )
  const [, bins, width] = input.shape
  if ((typeof bins === "number" && bins !== melBins) || (typeof width === "number" && width !== frames))
    return yield* loadFailed(
      "model",
      `${file} takes ${bins} mel bins by ${width} frames; Smart Turn 3 takes ${melBins} by ${frames}, which is 8 s of 16 kHz audio`,
    )
  const mel = yield* LogMel.make({ melBins, hopSamples, fftSize: 400, rateHz: 16_000 })
  const graph = { session, input, mel }
  const [found] = yield* Effect.mapError(score(graph, new Int16Array(turnEndSamples)), ({ detail }) =>
    loadFailed("model", detail),
  )
  if (!(found! >= 0 && found! <= 1))
    return yield* loadFailed("model", `${file} gives ${found}, which is no probability`)
  return graph
})

export const smartTurnOnnx: EngineDescriptor<"detection"> = {
  adapter: "smart-turn-onnx",
  kind: "detection",
  acquire: Effect.fnUntraced(function* (spec) {
    yield* decodeOptions(DetectionOptions, spec)
    const graph = yield* opened(spec)
    const engine: DetectionEngine = {
      kind: "detection",
      facts: { detects: "turn ends", slots: 1, summary: "Smart Turn, the last 8 s of a turn" },
      detect: (request, out) => detect(graph, request, out),
    }
    return engine
  }),
}
