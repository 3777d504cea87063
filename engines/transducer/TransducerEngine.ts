// The transcription engine for transducers in the published ONNX layouts (adapter "transducer-onnx"): NeMo's cache-aware streaming RNN-T,
// NeMo's offline RNN-T and TDT, and icefall's streaming Zipformer. README.md of this folder says how the parts belong together.
//
// Roles in the catalog entry: `encoder`, `decoder`, `joiner` (of exports whose decoder does not contain it) and those of TransducerFiles.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import {
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  loadFailed,
  type Outlet,
  type Segment,
  type TranscribeEnd,
  type TranscribeRequest,
  type TranscriptionEngine,
} from "../protocol/Engine.ts"
import { decodeOptions } from "../shared/files/EngineSpecFiles.ts"
import { compressionRatio } from "../shared/listening/Fallback.ts"
import { KeywordGraphs, TokenSpellings } from "../shared/listening/KeywordGraph.ts"
import { KeywordSearch, type KindOf } from "../shared/listening/KeywordSearch.ts"
import { unknownLanguage } from "../shared/listening/UnknownLanguage.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { limitThreads } from "../shared/onnx/ThreadLimit.ts"
import { chooseThreads } from "../shared/onnx/ThreadProbe.ts"
import { fallbackByte, isFallbackByte, spacedBytes } from "../shared/text/TokenBytes.ts"
import type { Rules, TimedToken } from "./decoding/Greedy.ts"
import { isControl, type SpokenWord, segmentsOf, spokenWords } from "./decoding/SpokenWords.ts"
import type { Vocabulary } from "./decoding/Vocabulary.ts"
import * as Encoders from "./Encoders.ts"
import { type Languages, languagesOf } from "./Languages.ts"
import { hearWindow } from "./OfflinePiece.ts"
import { TransducerOptions } from "./Options.ts"
import * as Scorers from "./Scorers.ts"
import { hearPiece, type Progress } from "./StreamedPiece.ts"
import { Streams } from "./Streams.ts"
import { rateHz, readFiles } from "./TransducerFiles.ts"

interface Loaded {
  readonly encoder: Encoders.StreamingEncoder | Encoders.OfflineEncoder
  readonly scorer: Scorers.TransducerScorer
  readonly rules: Rules
  readonly pieceSeconds: number
  readonly streams: Streams<Progress>
  readonly vocabulary: Vocabulary
  /** The phrases of the last requests. */
  readonly keywords: KeywordGraphs
  readonly languages: Languages
  /** Whether it finds the language itself. */
  readonly detects: boolean
}

/**
 * In `previousTokens` of a streaming model: the language was not requested, so the model finds it in each piece. The caller passes on the
 * language that the end of a request names, which would otherwise be taken for the caller's wish.
 */
const detectAgain = -1

/** Longest index of a duration in a TDT model: the published ones have 5, for 0 to 4 frames. */
const mostDurations = 16

// ------------------------------------------------------------ one request

/** What kind of token comes next, for the search of phrases. */
const kindOf =
  ({ rules, vocabulary }: Loaded): KindOf =>
  (token) => {
    if (token === rules.blank || rules.isSilent(token)) return "blank"
    return isControl(vocabulary.pieces[token] ?? "") ? "mark" : "text"
  }

interface Heard {
  readonly tokens: ReadonlyArray<TimedToken>
  readonly consumedSamples: number
  /** No word ends behind it. */
  readonly heardSamples: number
  readonly previousTokens: ReadonlyArray<number>
}

const hear = (
  loaded: Loaded,
  request: TranscribeRequest,
  wanted: string | undefined,
): Effect.Effect<Heard, EngineError> => {
  const { encoder } = loaded
  const { last, previousTokens, samples } = request
  const graph = loaded.keywords.of(request.keywords)
  const search = graph === undefined ? undefined : new KeywordSearch(graph, kindOf(loaded))
  if (!encoder.isStreaming) return hearWindow({ ...loaded, encoder, search }, samples, last, previousTokens)
  return Effect.map(
    hearPiece(
      { ...loaded, encoder, search },
      {
        samples,
        stream: request.stream,
        prompt: loaded.languages.promptOf(wanted),
        caption: request.caption === true,
        last,
      },
    ),
    (heard) => ({
      ...heard,
      heardSamples: heard.consumedSamples,
      previousTokens: wanted === undefined ? [detectAgain] : [],
    }),
  )
}

const bytesOfPiece = (piece: string): ReadonlyArray<number> =>
  isFallbackByte(piece) ? [fallbackByte(piece)] : [...spacedBytes(piece)]

const spellingsOf = ({ pieces }: Vocabulary, blank: number): TokenSpellings =>
  new TokenSpellings(
    pieces.map((piece, token) =>
      token === blank || isControl(piece) ? new Uint8Array(0) : Uint8Array.from(bytesOfPiece(piece)),
    ),
  )

/** `end` of a segment: no word is heard behind the end of the audio. */
const segmentOf = (
  words: ReadonlyArray<SpokenWord>,
  frameSeconds: number,
  audioSeconds: number,
  wanted: Pick<TranscribeRequest, "logprobs" | "words">,
  pieces: ReadonlyArray<string>,
): Segment => {
  const at = (frame: number) => Math.min(frame * frameSeconds, audioSeconds)
  const tokens = words.flatMap((word) => word.tokens)
  const text = words.map((word) => word.text).join("")
  return {
    start: at(words[0]!.start),
    end: at(words.at(-1)!.end),
    text,
    tokens: tokens.map(({ token }) => token),
    temperature: 0,
    avgLogprob: tokens.reduce((sum, { logprob }) => sum + logprob, 0) / tokens.length,
    compressionRatio: compressionRatio(text.trim()),
    noSpeechProb: 0,
    ...(wanted.logprobs === true
      ? { logprobs: tokens.map(({ logprob, token }) => ({ bytes: bytesOfPiece(pieces[token]!), logprob })) }
      : {}),
    ...(wanted.words
      ? { words: words.map((word) => ({ word: word.text.trim(), start: at(word.start), end: at(word.end) })) }
      : {}),
  }
}

const transcribe = Effect.fnUntraced(function* (
  loaded: Loaded,
  request: TranscribeRequest,
  out: Outlet<"transcription">,
): Effect.fn.Return<TranscribeEnd, EngineError> {
  const { detects, encoder, languages, vocabulary } = loaded
  const isDetected = encoder.isStreaming && request.previousTokens[0] === detectAgain
  const wanted = isDetected ? undefined : request.language
  if (wanted !== undefined && !languages.codes.includes(wanted)) return yield* unknownLanguage(wanted)
  const { frameSeconds } = encoder
  // Less than one feature frame says nothing.
  const hasAudio = request.samples.length >= rateHz / 100
  const heard: Heard = hasAudio
    ? yield* hear(loaded, request, wanted)
    : { tokens: [], consumedSamples: request.samples.length, heardSamples: 0, previousTokens: [] }
  const spoken = spokenWords(heard.tokens, vocabulary.pieces)
  const language =
    wanted ?? (detects ? spoken.language : undefined) ?? request.language ?? languages.codes[0]!
  out.started({ language })
  const seconds = heard.heardSamples / rateHz
  for (const words of segmentsOf(spoken.words, frameSeconds)) {
    if (out.paused()) yield* out.resumed
    out.push(segmentOf(words, frameSeconds, seconds, request, vocabulary.pieces))
  }
  return { language, consumedSamples: heard.consumedSamples, previousTokens: heard.previousTokens }
})

// ------------------------------------------------------------ load

/** What the width of the joint network's scores says about the vocabulary, and the rules that follow. */
const rulesOf = Effect.fnUntraced(function* (
  { blank, pieces }: Vocabulary,
  scores: number,
  form: Scorers.TransducerScorer["form"],
  isStreaming: boolean,
  mostPerFrame: number,
): Effect.fn.Return<Rules, EngineError> {
  const unfit = (detail: string) => loadFailed("vocabulary", detail)
  // Files of NeMo's exports may leave blank out: it is then the score behind the pieces.
  const tokens = blank === undefined && scores > pieces.length ? pieces.length + 1 : pieces.length
  const count = scores - tokens
  if (count < 0 || count > mostDurations || (count > 0 && (isStreaming || count < 2)))
    return yield* unfit(
      `it has ${pieces.length} pieces, the graphs score ${scores}: they are of different exports`,
    )
  const unknown = pieces.indexOf("<unk>")
  const isContext = form === "context"
  // NeMo puts blank behind the pieces, icefall before them.
  if (blank !== undefined && blank !== (isContext ? 0 : pieces.length - 1))
    return yield* unfit(
      `its piece ${pieces[blank]} has the id ${blank}: it belongs to another kind of export, or is mixed`,
    )
  return {
    tokens,
    blank: blank ?? (isContext ? 0 : tokens - 1),
    durations: Array.from({ length: count }, (_, frames) => frames),
    mostPerFrame: isContext ? 1 : mostPerFrame,
    isSilent: isContext ? (token) => token === unknown : () => false,
  }
})

const acquire = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<TranscriptionEngine, EngineError, Scope.Scope> {
  const options = yield* decodeOptions(TransducerOptions, spec)
  const { config, vocabulary } = yield* readFiles(spec)
  const onnx = yield* optionsOf(spec)
  const gate = Semaphore.makeUnsafe(1)
  const encoderGraph = yield* OnnxSession.openRole(spec, "encoder", onnx)
  const decoderGraph = yield* OnnxSession.openRole(spec, "decoder", onnx)
  const joinerGraph =
    spec.files.joiner === undefined ? undefined : yield* OnnxSession.openRole(spec, "joiner", onnx)
  // The number of blank is known once the graphs have been run; the probe feeds 0.
  const probe = yield* Scorers.make(decoderGraph, joinerGraph, gate, 0)
  const encoder = yield* Encoders.make(encoderGraph, gate, { options, config, width: probe.width })
  const { pieceSeconds } = options
  const silence = new Float32Array(rateHz)
  const { costMs, frames } = encoder.isStreaming
    ? yield* firstChunks(encoder, silence)
    : { frames: yield* encoder.encode(silence), costMs: 0 }
  if (frames.count === 0 || (encoder.isStreaming && frames.count > encoder.framesPerChunk)) {
    const wanted = encoder.isStreaming ? encoder.framesPerChunk : 1
    return yield* loadFailed("encoder", `returns ${frames.count} frames, where ${wanted} are needed`)
  }
  const column = frames.column(0)
  if (probe.width !== undefined && probe.width !== column.length) {
    const detail = `the encoder makes frames of ${column.length} values, the decoder takes ${probe.width}: they are of different exports`
    return yield* loadFailed("decoder", detail)
  }
  const { row } = yield* probe.score(column, probe.start)
  const mostPerFrame = options.mostPerFrame ?? config.mostPerFrame ?? 10
  const rules = yield* rulesOf(vocabulary, row.length, probe.form, encoder.isStreaming, mostPerFrame)
  if (config.blank !== undefined && config.blank !== rules.blank) {
    const detail = `blank_id is ${config.blank}, the vocabulary's is ${rules.blank}: the export is mixed`
    return yield* loadFailed("config", detail)
  }
  const scorer = yield* Scorers.make(decoderGraph, joinerGraph, gate, rules.blank)
  const hasPrompt = encoder.isStreaming && encoder.hasPrompt
  const languages = languagesOf(options.languages, config.prompts, hasPrompt)
  if (languages.codes.length === 0)
    return yield* loadFailed("options", "languages: the model knows none of them")
  const loaded: Loaded = {
    encoder,
    scorer,
    rules,
    pieceSeconds,
    streams: new Streams(options.keptStreams),
    vocabulary,
    keywords: new KeywordGraphs(() => spellingsOf(vocabulary, rules.blank)),
    languages,
    detects: languages.codes.length > 1,
  }
  const kind = rules.durations.length > 0 ? "TDT" : "RNN-T"
  return {
    kind: "transcription",
    facts: {
      slots: options.slots,
      ...windowsOf(encoder, pieceSeconds, costMs),
      ...(encoder.isStreaming && encoder.sharedCalls > 1 ? { sharedCalls: encoder.sharedCalls } : {}),
      languages: languages.codes,
      summary: `${encoder.what}, ${kind}, ${vocabulary.pieces.length} pieces, ${languages.codes.length} language${languages.codes.length === 1 ? "" : "s"}`,
    },
    transcribe: (request, out) => transcribe(loaded, request, out),
  }
})

const paddedTo = (samples: Float32Array, { aheadSamples, chunkSamples }: Encoders.StreamingEncoder) => {
  const padded = new Float32Array(Math.max(samples.length, chunkSamples + aheadSamples))
  padded.set(samples)
  return padded
}

/** Frames of a chunk of silence, and the time of one: that of the second, because a first call is longer. */
const firstChunks = Effect.fnUntraced(function* (encoder: Encoders.StreamingEncoder, silence: Float32Array) {
  const padded = paddedTo(silence, encoder)
  yield* encoder.chunk(padded, 0, encoder.start, 0)
  const beganMs = performance.now()
  const { frames } = yield* encoder.chunk(padded, 0, encoder.start, 0)
  return { frames, costMs: performance.now() - beganMs }
})

/** The longest window, and the audio behind which its result is final. */
const windowsOf = (encoder: Loaded["encoder"], pieceSeconds: number, costMs: number) => {
  if (!encoder.isStreaming) return { windowSeconds: pieceSeconds, closedSeconds: pieceSeconds }
  // The piece ends with the first chunk that reaches its length.
  const chunks = Math.ceil((pieceSeconds * rateHz) / encoder.chunkSamples)
  const closedSamples = chunks * encoder.chunkSamples + encoder.aheadSamples
  // Half a sample of margin: the gateway rounds windows down and closed audio up.
  return {
    windowSeconds: (closedSamples + 1.5) / rateHz,
    closedSeconds: (closedSamples - 0.5) / rateHz,
    grows: { seconds: encoder.chunkSamples / rateHz, aheadSeconds: encoder.aheadSamples / rateHz, costMs },
  }
}

export const transducerOnnx: EngineDescriptor<"transcription"> = {
  adapter: "transducer-onnx",
  kind: "transcription",
  chooseThreads,
  limitThreads,
  acquire,
}
