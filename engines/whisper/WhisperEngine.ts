// The transcription engine for Whisper weights in the published ONNX layout (adapter "whisper-hf-onnx"). One call
// transcribes one window of at most 30 s; the caller advances by `consumedSamples`, passes `previousTokens` and the
// language on, and concatenates the segment texts. Native calls of all requests pass one gate, one decoder step at a
// time; interruption takes effect there.
//
// Roles in the catalog entry: `encoder`, `decoder` and those of WhisperModel.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import {
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  loadFailed,
  type TranscriptionEngine,
} from "../protocol/Engine.ts"
import { decodeOptions, fileOf } from "../shared/files/EngineSpecFiles.ts"
import { KeywordGraphs, TokenSpellings } from "../shared/listening/KeywordGraph.ts"
import * as LogMel from "../shared/listening/LogMel.ts"
import { type OnnxOptions, optionsOf } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import { captionCost, type OpenEncoder, openEncoder } from "./CaptionEncoder.ts"
import * as DecoderGraph from "./DecoderGraph.ts"
import { takesDrafts } from "./Drafts.ts"
import { MelMemory } from "./features/MelMemory.ts"
import type { LoadedWhisper } from "./LoadedWhisper.ts"
import { WhisperOptions } from "./Options.ts"
import { closedSamples, transcribe } from "./Transcribe.ts"
import { readModel, type WhisperModel } from "./WhisperModel.ts"

/** Windows of a file that are drafted side by side, if the place of a later window does not depend on earlier text. */
const mostPiecesTogether = 6

/** Shape [batch, mel bins, frames]; a symbolic dimension accepts any size. */
const checkEncoder = (
  { shape }: OnnxSession.TensorInfo,
  { features, windowSamples }: WhisperModel,
  variableLength: boolean,
): Effect.Effect<void, EngineError> => {
  const [, melBins, frames] = shape
  const refuse = (detail: string) => Effect.fail(loadFailed("encoder", detail))
  if (typeof melBins === "number" && melBins !== features.melBins) {
    return refuse(`the graph takes ${melBins} mel bins, the preprocessor makes ${features.melBins}`)
  }
  if (typeof frames !== "number") return Effect.void
  const made = windowSamples / features.hopSamples
  if (frames !== made) return refuse(`the graph takes ${frames} frames, the preprocessor makes ${made}`)
  return variableLength
    ? refuse(`the graph takes ${frames} frames only: variableLength is not possible`)
    : Effect.void
}

/** Encoders for audio of any length are used unchanged. */
const openEncoderOf = Effect.fnUntraced(function* (
  spec: EngineSpec,
  model: WhisperModel,
  onnx: OnnxOptions,
  variableLength: boolean,
): Effect.fn.Return<OpenEncoder, EngineError, Scope.Scope> {
  const path = yield* fileOf(spec, "encoder")
  if (!variableLength) return yield* openEncoder(path, model, onnx)
  return { encoder: yield* OnnxSession.open(path, onnx), shortAudio: false, refusal: undefined }
})

const spellingsOf = ({ bytesOf, layout }: WhisperModel): TokenSpellings =>
  new TokenSpellings(Array.from({ length: layout.endOfText }, (_, token) => bytesOf([token])))

const acquire = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<TranscriptionEngine, EngineError, Scope.Scope> {
  const options = yield* decodeOptions(WhisperOptions, spec)
  const model = yield* readModel(spec)
  const onnx = yield* optionsOf(spec)
  const { variableLength, pieceSeconds } = options
  const { encoder, refusal, shortAudio } = yield* openEncoderOf(spec, model, onnx, variableLength)
  yield* checkEncoder(yield* OnnxSession.inputNamed(encoder, ["input_features"]), model, variableLength)
  yield* OnnxSession.outputNamed(encoder, ["last_hidden_state"])
  const gate = Semaphore.makeUnsafe(1)
  const decoder = yield* DecoderGraph.make(
    yield* OnnxSession.openRole(spec, "decoder", onnx),
    gate,
    model.alignmentHeads,
  )
  const mel = yield* LogMel.make(model.features)
  const pieceSamples = pieceSeconds === undefined ? undefined : pieceSeconds * model.features.rateHz
  const own = model.languages.size === 0 ? ["en"] : [...model.languages.keys()]
  const languages = [...new Set([...own, ...options.acceptLanguages])]
  const melMemory = new MelMemory()
  const parts = { model, encoder, decoder, mel, melMemory, gate }
  const drafts = pieceSamples !== undefined && (yield* takesDrafts(model, decoder))
  const piecesTogether = drafts ? mostPiecesTogether : 1
  const loaded: LoadedWhisper = {
    ...parts,
    variableLength,
    shortAudio,
    pieceSamples,
    piecesTogether,
    keywords: new KeywordGraphs(() => spellingsOf(model)),
    languages,
  }
  const captions = shortAudio ? yield* captionCost(loaded) : undefined
  if (refusal !== undefined) {
    process.stderr.write(`warning: captions of ${spec.modelId} encode whole windows: ${refusal}\n`)
  }
  return {
    kind: "transcription",
    facts: {
      slots: options.slots,
      windowSeconds: model.windowSamples / model.features.rateHz,
      ...(pieceSeconds === undefined ? {} : { closedSeconds: closedSamples(loaded) / model.features.rateHz }),
      ...(drafts ? { togetherSeconds: mostPiecesTogether * pieceSeconds! } : {}),
      ...(captions === undefined ? {} : { captions }),
      languages,
      ...(model.translate === undefined ? {} : { translates: true }),
      summary: `whisper, width ${model.width}, ${decoder.layers} decoder layers, ${own.length} language${own.length === 1 ? "" : "s"}`,
    },
    transcribe: (request, out) => transcribe(loaded, request, out),
  }
})

export const whisperHfOnnx: EngineDescriptor<"transcription"> = {
  adapter: "whisper-hf-onnx",
  kind: "transcription",
  chooseThreads,
  limitThreads,
  acquire,
}
