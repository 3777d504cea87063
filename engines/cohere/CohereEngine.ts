// The transcription engine for Cohere Transcribe weights in the Hugging Face ONNX layout (adapter
// "cohere-hf-onnx"). One call transcribes one piece of at most 35 s, cut at its quietest place if audio follows. The
// model outputs no timestamps, so a piece is one segment. It detects no language (default English) and has no
// conditioning: a request's hint is accepted and ignored, and `previousTokens` only hold the bytes of an incomplete
// character.
//
// Roles in the catalog entry: `encoder`, `decoder` and those of CohereModel.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type {
  EngineDescriptor,
  EngineError,
  EngineSpec,
  Outlet,
  TranscribeEnd,
  TranscribeRequest,
  TranscriptionEngine,
} from "../protocol/Engine.ts"
import { decodeOptions } from "../shared/files/EngineSpecFiles.ts"
import { compressionRatio } from "../shared/listening/Fallback.ts"
import { firstPiece } from "../shared/listening/QuietPoint.ts"
import { choose, seededRandom } from "../shared/listening/Sampling.ts"
import { heldTokens, SegmentTexts } from "../shared/listening/SegmentText.ts"
import { unknownLanguage } from "../shared/listening/UnknownLanguage.ts"
import { interpolatedWords, isUnspaced } from "../shared/listening/Words.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import * as CohereDecoder from "./CohereDecoder.ts"
import * as CohereEncoder from "./CohereEncoder.ts"
import * as CohereFeatures from "./CohereFeatures.ts"
import { type CohereModel, languageCodes, readModel } from "./CohereModel.ts"
import { repeatedTail } from "./LoopGuard.ts"
import { CohereOptions } from "./Options.ts"

/** Fixed, so that the same audio always gives the same text. */
const seed = 0xc0de

interface Loaded {
  readonly model: CohereModel
  readonly encoder: CohereEncoder.CohereEncoder
  readonly decoder: CohereDecoder.CohereDecoder
  readonly maxPositions: number
}

/** Greedy at temperature 0, else sampled. Ends at the end token, at a loop, or when the positions run out. */
const decode = Effect.fnUntraced(function* (
  loaded: Loaded,
  request: TranscribeRequest,
  samples: Float32Array,
) {
  const { model, decoder } = loaded
  const hidden = yield* loaded.encoder(samples)
  const prompt = model.prompt(request.language ?? "en", request.punctuation ?? true)
  const random = seededRandom(seed)
  const tokens: Array<number> = []
  const logprobs: Array<number> = []
  let sum = 0
  let output = yield* decoder.feed(prompt, decoder.initial, hidden)
  for (;;) {
    const { token, logprob } = choose(output.logits, request.temperature, random)
    sum += logprob
    if (token === model.endOfText) break
    tokens.push(token)
    logprobs.push(logprob)
    const repeated = repeatedTail(tokens)
    if (repeated > 0) {
      tokens.splice(-repeated)
      break
    }
    if (prompt.length + tokens.length >= loaded.maxPositions) break
    const { state } = output
    output = yield* decoder.feed([token], state, hidden)
    decoder.release(state)
  }
  return { tokens, logprobs, avgLogprob: sum / (tokens.length + 1) }
})

const transcribe = Effect.fnUntraced(function* (
  loaded: Loaded,
  request: TranscribeRequest,
  out: Outlet<"transcription">,
): Effect.fn.Return<TranscribeEnd, EngineError> {
  const { model } = loaded
  const { rateHz } = model.features
  const { language = "en" } = request
  if (!(languageCodes as ReadonlyArray<string>).includes(language)) return yield* unknownLanguage(language)
  out.started({ language })
  const consumedSamples = firstPiece(request.samples, {
    maxSamples: model.pieceSeconds * rateHz,
    searchSamples: model.searchSeconds * rateHz,
    rateHz,
    last: request.last,
  })
  const end: TranscribeEnd = { language, consumedSamples, previousTokens: [] }
  // Less than one frame has no features.
  if (consumedSamples < model.features.hopSamples) return end
  const { tokens, logprobs, avgLogprob } = yield* decode(
    loaded,
    request,
    request.samples.subarray(0, consumedSamples),
  )
  const texts = new SegmentTexts(model.bytesOf, language, request.previousTokens)
  const text = texts.next(tokens).replace(strayStart, isUnspaced(language) ? "" : " ")
  const ended = { ...end, previousTokens: heldTokens(model.bytesOf, [...request.previousTokens, ...tokens]) }
  if (text.trim() === "") return ended
  const seconds = consumedSamples / rateHz
  if (out.paused()) yield* out.resumed
  out.push({
    start: 0,
    end: seconds,
    text,
    tokens,
    temperature: request.temperature,
    avgLogprob,
    compressionRatio: compressionRatio(text.trim()),
    noSpeechProb: 0,
    ...(request.words ? { words: interpolatedWords(text, 0, seconds, language) } : {}),
    ...(request.logprobs === true
      ? {
          logprobs: tokens.map((token, i) => ({
            bytes: [...model.bytesOf([token])],
            logprob: logprobs[i]!,
          })),
        }
      : {}),
  })
  return ended
})

/** Spaces and punctuation that the model sometimes begins with. */
const strayStart = /^[\s.,!?]+/u

const acquire = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<TranscriptionEngine, EngineError, Scope.Scope> {
  const options = yield* decodeOptions(CohereOptions, spec)
  const model = yield* readModel(spec)
  const onnx = yield* optionsOf(spec)
  const gate = Semaphore.makeUnsafe(1)
  const features = yield* CohereFeatures.make(model.features)
  const encoder = yield* CohereEncoder.make(
    yield* OnnxSession.openRole(spec, "encoder", onnx),
    gate,
    features,
    model.features.melBins,
  )
  const decoder = yield* CohereDecoder.make(yield* OnnxSession.openRole(spec, "decoder", onnx), gate)
  const loaded: Loaded = { model, encoder, decoder, maxPositions: options.maxPositions }
  return {
    kind: "transcription",
    facts: {
      slots: options.slots,
      windowSeconds: model.pieceSeconds,
      languages: languageCodes,
      summary: `cohere transcribe, ${decoder.layers} decoder layers, ${languageCodes.length} languages`,
    },
    transcribe: (request, out) => transcribe(loaded, request, out),
  }
})

export const cohereHfOnnx: EngineDescriptor<"transcription"> = {
  adapter: "cohere-hf-onnx",
  kind: "transcription",
  chooseThreads,
  limitThreads,
  acquire,
}
