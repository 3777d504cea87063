// The transcription verb: one window in, segments out. Language, prompt, attempts, seek, texts, in this order; each
// decision is a pure function of its own file. Called by WhisperEngine; every native call passes the engine's gate.
import { Effect, type Semaphore } from "effect"
import type { Tensor } from "onnxruntime-node"
import {
  EngineError,
  type Outlet,
  type Segment,
  type TranscribeEnd,
  type TranscribeRequest,
  type TranscribeStarted,
} from "../Engine.ts"
import * as Fallback from "../shared/listening/Fallback.ts"
import { argMax } from "../shared/listening/Sampling.ts"
import { segmentText } from "../shared/listening/SegmentText.ts"
import { interpolatedWords } from "../shared/listening/Words.ts"
import type { OnnxSession } from "../shared/onnx/OnnxSession.ts"
import type { DecoderGraph } from "./DecoderGraph.ts"
import type { LogMel } from "./LogMel.ts"
import type { MelMemory } from "./MelMemory.ts"
import { conditioningLimit, encodeHint, promptOf } from "./Prompt.ts"
import { segmentsOf } from "./Seek.ts"
import { encode, pieceOf } from "./WhisperEncoder.ts"
import type { WhisperModel } from "./WhisperModel.ts"
import { attempt, type ReadPrompt, readPrompt } from "./WhisperWindow.ts"

/** Everything that lives as long as the engine. */
export interface Loaded {
  readonly model: WhisperModel
  readonly encoder: OnnxSession
  readonly decoder: DecoderGraph
  readonly mel: LogMel
  readonly melMemory: MelMemory
  readonly gate: Semaphore.Semaphore
  /** See WhisperOptions. */
  readonly variableLength: boolean
  readonly pieceSamples: number | undefined
  /** Codes that a request may name. */
  readonly languages: ReadonlyArray<string>
}

/** The language of the request, or the most probable one; one extra decoder call, once a file. */
const languageOf = Effect.fnUntraced(function* (
  loaded: Loaded,
  request: TranscribeRequest,
  hidden: Effect.Effect<Tensor, EngineError>,
) {
  const { languages, startOfTranscript } = loaded.model
  if (request.language !== undefined) {
    if (loaded.languages.includes(request.language)) return request.language
    const detail = `this model does not know the language "${request.language.slice(0, 16)}"`
    return yield* new EngineError({ reason: "InvalidInput", field: "language", detail })
  }
  const codes = [...languages.keys()]
  if (codes.length < 2) return codes[0] ?? "en"
  const output = yield* loaded.decoder.first([startOfTranscript], yield* hidden)
  const row = output.row(0)
  return codes[argMax(Float32Array.from(codes, (code) => row[languages.get(code)!]!))]!
})

const firstOf = <A>(values: Iterable<A>): A | undefined => [...values][0]

/** Climbs the temperature ladder until an attempt is good, silence, or the last. */
const decodeWindow = Effect.fnUntraced(function* (loaded: Loaded, read: ReadPrompt, requested: number) {
  const ladder = Fallback.temperatures(requested)
  for (const temperature of ladder) {
    const result = yield* attempt(loaded.model, loaded.decoder, read, temperature)
    const text = loaded.model.decode(result.tokens.filter((token) => token < loaded.model.layout.endOfText))
    const measures: Fallback.Measures = {
      compressionRatio: Fallback.compressionRatio(text.trim()),
      avgLogprob: result.avgLogprob,
      noSpeechProb: read.noSpeechProb,
    }
    if (!Fallback.needsRetry(measures) || temperature === ladder.at(-1)) {
      return { tokens: result.tokens, temperature, measures }
    }
  }
  return yield* Effect.die(new Error("the temperature ladder is empty"))
})

/** A rest of a file shorter than this is not worth a window: shorter than a spoken word. A guess. */
export const SHORTEST_REST_SECONDS = 0.25

const consumedOf = (
  loaded: Loaded,
  request: TranscribeRequest,
  heardSamples: number,
  seconds: number,
): number => {
  const { rateHz } = loaded.model.features
  const consumed = Math.min(heardSamples, Math.max(1, Math.round(seconds * rateHz)))
  const rest = request.samples.length - consumed
  return request.last && rest < SHORTEST_REST_SECONDS * rateHz ? request.samples.length : consumed
}

export const transcribe = Effect.fnUntraced(function* (
  loaded: Loaded,
  request: TranscribeRequest,
  out: Outlet<TranscribeStarted, Segment>,
): Effect.fn.Return<TranscribeEnd, EngineError> {
  const { model } = loaded
  const samples = pieceOf(loaded, request.samples, request.last)
  const seconds = samples.length / model.features.rateHz
  const hidden = yield* Effect.cached(encode(loaded, samples, request.stream))
  const language = yield* languageOf(loaded, request, hidden)
  out.started({ language })
  if (samples.length === 0) {
    return { language, consumedSamples: 0, previousTokens: request.previousTokens }
  }
  const conditioning =
    request.previousTokens.length > 0 ? request.previousTokens : encodeHint(model, request.prompt)
  const timestamps = request.timestamps ?? true
  const prompt = promptOf(model, {
    languageToken: model.languages.get(language) ?? firstOf(model.languages.values()),
    conditioning,
    timestamps,
    seconds,
  })
  const draft = request.draft ?? []
  const read = yield* readPrompt(model, loaded.decoder, yield* hidden, prompt, { timestamps, draft })
  const { tokens, temperature, measures } = yield* decodeWindow(loaded, read, request.temperature)
  if (Fallback.isSilence(measures)) {
    const consumedSamples = consumedOf(loaded, request, samples.length, seconds)
    return { language, consumedSamples, previousTokens: request.previousTokens, tokens: [] }
  }
  const heard = segmentsOf(tokens, model.layout, seconds)
  for (const [i, segment] of heard.segments.entries()) {
    const text = segmentText(model.decode(segment.tokens), {
      language,
      first: i === 0,
      punctuation: request.punctuation,
    })
    if (text.trim() === "") continue
    const { start, end } = segment
    if (out.paused()) yield* out.resumed
    out.push({
      start,
      end,
      text,
      tokens: segment.tokens,
      temperature,
      ...measures,
      ...(request.words ? { words: interpolatedWords(text, start, end, language) } : {}),
    })
  }
  const spoken = heard.segments.flatMap((segment) => segment.tokens)
  return {
    language,
    consumedSamples: consumedOf(loaded, request, samples.length, heard.consumedSeconds),
    previousTokens:
      temperature > Fallback.CONDITIONING_TEMPERATURE_LIMIT
        ? []
        : [...conditioning, ...spoken].slice(-conditioningLimit(model)),
    tokens,
  }
})
