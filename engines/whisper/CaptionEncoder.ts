// Opens the encoder of a Whisper folder at its load. If its graph can be changed (ShortAudio), captions encode only the
// audio that there is, and the cost of a caption is measured.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type CaptionFacts, type EngineError, loadFailed } from "../protocol/Engine.ts"
import type { OnnxOptions } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { numeric, toFloat32 } from "../shared/onnx/Tensors.ts"
import type { LoadedWhisper } from "./LoadedWhisper.ts"
import { promptOf } from "./Prompt.ts"
import { type EncoderShape, shortAudioGraph } from "./rules/ShortAudio.ts"
import { captionFrames, encode } from "./WhisperEncoder.ts"
import type { WhisperModel } from "./WhisperModel.ts"

export interface OpenEncoder {
  readonly encoder: OnnxSession.OnnxSession
  readonly shortAudio: boolean
  /** Why it takes whole windows only; undefined if the graph was not expected to change. */
  readonly refusal: string | undefined
}

const problem = (detail: string) => loadFailed("encoder", detail)

/** Frames of the trial: enough for both convolutions. */
const trialFrames = 64

/** Runs the changed graph on less than a window and checks the shape of its output. */
const trial = Effect.fnUntraced(function* (encoder: OnnxSession.OnnxSession, model: WhisperModel) {
  const { type } = yield* OnnxSession.inputNamed(encoder, ["input_features"])
  const { melBins } = model.features
  const features = numeric(type, new Float32Array(melBins * trialFrames), [1, melBins, trialFrames])
  if (features === undefined) return yield* problem(`it takes ${type}`)
  const outputs = yield* encoder.run({ input_features: features }, ["last_hidden_state"])
  const hidden = outputs.last_hidden_state
  const wanted = [1, trialFrames / framesPerPosition(model), model.width]
  if (hidden === undefined || wanted.some((dim, axis) => hidden.dims[axis] !== dim)) {
    return yield* problem(`it gives [${hidden?.dims.join(", ")}] instead of [${wanted.join(", ")}]`)
  }
  if (!toFloat32(hidden).every(Number.isFinite)) return yield* problem("it gives values that are no numbers")
})

const framesOf = ({ features, windowSamples }: WhisperModel): number => windowSamples / features.hopSamples
const framesPerPosition = (model: WhisperModel): number => framesOf(model) / model.sourcePositions

const openShort = Effect.fnUntraced(function* (path: string, model: WhisperModel, options: OnnxOptions) {
  const shape: EncoderShape = {
    positions: model.sourcePositions,
    width: model.width,
    frames: framesOf(model),
  }
  const graph = yield* Effect.tryPromise({
    try: () => shortAudioGraph(path, shape),
    catch: (cause) => problem(cause instanceof Error ? cause.message : String(cause)),
  })
  if (graph === undefined) return yield* problem("its graph adds no table of positions where one is expected")
  const encoder = yield* OnnxSession.openEdited(path, graph, options)
  yield* trial(encoder, model)
  return encoder
})

/** The changed graph if its trial succeeds, else the file as it is. */
export const openEncoder = Effect.fnUntraced(function* (
  path: string,
  model: WhisperModel,
  options: OnnxOptions,
): Effect.fn.Return<OpenEncoder, EngineError, Scope.Scope> {
  const own = yield* Scope.fork(yield* Effect.scope)
  const short = yield* openShort(path, model, options).pipe(Scope.provide(own), Effect.result)
  if (short._tag === "Success") return { encoder: short.success, shortAudio: true, refusal: undefined }
  yield* Scope.close(own, Exit.void)
  const encoder = yield* OnnxSession.open(path, options)
  return { encoder, shortAudio: false, refusal: short.failure.detail }
})

/**
 * Longest audio of a caption in seconds; a longer open piece is captioned in parts. A compromise: the encoder's work grows
 * with the length, and words at the edge of a part are transcribed without what follows.
 */
const captionSeconds = 8

/** Tokens of four seconds of fast speech that a caption repeats, and new tokens of one more second. */
const repeatedTokens = 16
const newTokens = 5
/** Tokens of a whole window of speech: three a second. */
const windowTokens = 90

const timed = <A, E>(work: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const beganMs = performance.now()
    const result = yield* work
    return [result, performance.now() - beganMs] as const
  })

/**
 * Measures a caption of half the longest audio: encoder, check of the text so far, some new tokens. The cost of a whole
 * window is extrapolated by encoder positions and decoder calls; the first real calls correct both.
 */
export const captionCost = Effect.fnUntraced(function* (
  loaded: LoadedWhisper,
): Effect.fn.Return<CaptionFacts, EngineError> {
  const { decoder, model } = loaded
  const seconds = captionSeconds / 2
  const samples = new Float32Array(seconds * model.features.rateHz)
  const [hidden, encoderMs] = yield* timed(encode(loaded, samples, { caption: true }))
  const prompt = promptOf(model, {
    languageToken: [...model.languages.values()][0],
    conditioning: [],
    timestamps: false,
    seconds,
  })
  // Arbitrary text.
  const tokens = [...prompt.tokens, ...Array.from({ length: repeatedTokens }, (_, i) => i)]
  const [first, firstMs] = yield* timed(decoder.first(tokens, hidden))
  let { state } = first
  const [, newMs] = yield* timed(
    Effect.gen(function* () {
      for (let i = 0; i < newTokens; i++) {
        const next = yield* decoder.next([i], state, hidden)
        if (state !== first.state) decoder.release(state)
        next.forget()
        state = next.state
      }
    }),
  )
  if (state !== first.state) decoder.release(state)
  decoder.end(first)
  const share = framesOf(model) / captionFrames(model, samples.length)
  return {
    seconds: captionSeconds,
    captionMs: encoderMs + firstMs + newMs,
    windowMs: share * encoderMs + firstMs + (newMs * windowTokens) / newTokens,
  }
})
