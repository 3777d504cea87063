// The transcription verb: one window in, segments out; or several windows, one after the other. The steps are language,
// drafts, prompt, attempts, seek, texts; each decision is a pure function in a file of its own. Every native call passes
// the engine's gate.
import * as Effect from "effect/Effect"
import type { Tensor } from "onnxruntime-node"
import type { EngineError, Outlet, Segment, TranscribeEnd, TranscribeRequest } from "../protocol/Engine.ts"
import * as Fallback from "../shared/listening/Fallback.ts"
import { argMax } from "../shared/listening/Sampling.ts"
import { SegmentTexts } from "../shared/listening/SegmentText.ts"
import { unknownLanguage } from "../shared/listening/UnknownLanguage.ts"
import { interpolatedWords } from "../shared/listening/Words.ts"
import { draftsOf } from "./Drafts.ts"
import type { LoadedWhisper } from "./LoadedWhisper.ts"
import { conditioningLimit, encodeHint, promptOf } from "./Prompt.ts"
import { segmentsOf } from "./rules/Seek.ts"
import { encode, pieceOf } from "./WhisperEncoder.ts"
import { attempt, type ReadPrompt, readPrompt } from "./WhisperWindow.ts"
import { alignedWords, tokenTimes } from "./WordTimes.ts"

/** The language of the request, or the most probable one: one extra decoder call, once a file. */
const languageOf = Effect.fnUntraced(function* (
  loaded: LoadedWhisper,
  request: TranscribeRequest,
  hidden: Effect.Effect<Tensor, EngineError>,
) {
  const { languages, startOfTranscript } = loaded.model
  if (request.language !== undefined) {
    if (loaded.languages.includes(request.language)) return request.language
    return yield* unknownLanguage(request.language)
  }
  const codes = [...languages.keys()]
  if (codes.length < 2) return codes[0] ?? "en"
  const output = yield* loaded.decoder.first([startOfTranscript], yield* hidden)
  const row = output.row(0)
  const code = codes[argMax(Float32Array.from(codes, (each) => row[languages.get(each)!]!))]!
  loaded.decoder.end(output)
  return code
})

const firstOf = <A>(values: Iterable<A>): A | undefined => [...values][0]

const measured = new TextDecoder("utf-8", { ignoreBOM: true })

/** Raises the temperature until an attempt is accepted, is silence, or is the last. A caption gets one attempt. */
const decodeWindow = Effect.fnUntraced(function* (
  loaded: LoadedWhisper,
  read: ReadPrompt,
  { caption, temperature: requested }: TranscribeRequest,
) {
  const ladder = caption === true ? [requested] : Fallback.temperatures(requested)
  for (const temperature of ladder) {
    const result = yield* attempt(loaded.model, loaded.decoder, read, temperature)
    const spoken = result.tokens.filter((token) => token < loaded.model.layout.endOfText)
    // The text is only measured, so invalid UTF-8 bytes count too: a loop of them is a loop.
    const text = measured.decode(loaded.model.bytesOf(spoken))
    const measures: Fallback.Measures = {
      compressionRatio: Fallback.compressionRatio(text.trim()),
      avgLogprob: result.avgLogprob,
      noSpeechProb: read.noSpeechProb,
    }
    if (!Fallback.needsRetry(measures) || temperature === ladder.at(-1)) {
      return { tokens: result.tokens, logprobs: result.logprobs, temperature, measures }
    }
  }
  return yield* Effect.die(new Error("the temperature ladder is empty"))
})

/** A shorter rest of a file is not transcribed: it is shorter than a spoken word. A guess. */
const shortestRestSeconds = 0.25

/** A window with more samples than this is cut inside its own audio; no short rest is added to its piece. */
export const closedSamples = ({
  model,
  pieceSamples,
}: Pick<LoadedWhisper, "model" | "pieceSamples">): number =>
  (pieceSamples ?? model.windowSamples) + shortestRestSeconds * model.features.rateHz

const consumedOf = (
  loaded: LoadedWhisper,
  request: TranscribeRequest,
  { at, samples }: Piece,
  seconds: number,
): number => {
  const { rateHz } = loaded.model.features
  const consumed = at + Math.min(samples.length, Math.max(1, Math.round(seconds * rateHz)))
  const rest = request.samples.length - consumed
  return request.last && rest < shortestRestSeconds * rateHz ? request.samples.length : consumed
}

/** The audio of one decoding, and its expected tokens. */
interface Piece {
  /** Offset of the piece in the request's samples. */
  readonly at: number
  readonly samples: Float32Array
  readonly hidden: Tensor
  readonly expected: ReadonlyArray<number>
}

const promptFor = (
  { model }: LoadedWhisper,
  language: string,
  { samples }: Pick<Piece, "samples">,
  conditioning: ReadonlyArray<number>,
  how: { readonly timestamps: boolean; readonly caption: boolean; readonly translate: boolean },
) =>
  promptOf(model, {
    languageToken: model.languages.get(language) ?? firstOf(model.languages.values()),
    conditioning,
    ...how,
    seconds: samples.length / model.features.rateHz,
  })

/** The prompt with which the words' times are found: without earlier text and without timestamps. */
const promptOfTimes = (
  loaded: LoadedWhisper,
  language: string,
  piece: Pick<Piece, "samples">,
  translate: boolean,
) => promptFor(loaded, language, piece, [], { timestamps: false, caption: false, translate }).tokens

/**
 * The request's pieces, with drafts, under the assumption that each is consumed whole; only the first if the next piece
 * depends on it. They are cut like the windows of separate requests; later audio could change none of them.
 */
const piecesOf = Effect.fnUntraced(function* (
  loaded: LoadedWhisper,
  request: TranscribeRequest,
  language: string,
  first: Pick<Piece, "at" | "samples" | "hidden">,
): Effect.fn.Return<ReadonlyArray<Piece>, EngineError> {
  const alone = [{ ...first, expected: [] }]
  if (request.together !== true || request.temperature > 0 || loaded.piecesTogether < 2) return alone
  const closed = closedSamples(loaded)
  const cuts: Array<Pick<Piece, "at" | "samples">> = [first]
  while (cuts.length < loaded.piecesTogether) {
    const { at, samples } = cuts.at(-1)!
    const rest = request.samples.subarray(at + samples.length)
    const nothing = request.last && rest.length < shortestRestSeconds * loaded.model.features.rateHz
    if (nothing || (!request.last && rest.length <= closed)) break
    cuts.push({ at: at + samples.length, samples: pieceOf(loaded, rest, request.last) })
  }
  if (cuts.length === 1) return alone
  const pieces = yield* Effect.forEach(cuts, (cut, i) =>
    Effect.map(i === 0 ? Effect.succeed(first.hidden) : encode(loaded, cut.samples, {}), (hidden) => ({
      ...cut,
      hidden,
    })),
  )
  const longest = pieces.reduce((a, b) => (a.samples.length < b.samples.length ? b : a))
  const drafts = yield* draftsOf(
    loaded.model,
    loaded.decoder,
    pieces.map(({ hidden }) => hidden),
    promptFor(loaded, language, longest, [], {
      timestamps: true,
      caption: false,
      translate: request.translate === true,
    }),
  )
  return pieces.map((piece, i) => ({ ...piece, expected: drafts[i]! }))
})

interface TranscribedPiece {
  readonly consumedSamples: number
  readonly previousTokens: ReadonlyArray<number>
  readonly tokens: ReadonlyArray<number>
}

/** Transcribes one piece: attempts, seek, texts. `more`: the request has further pieces if this one is consumed whole. */
const transcribePiece = Effect.fnUntraced(function* (
  loaded: LoadedWhisper,
  request: TranscribeRequest,
  piece: Piece,
  { language, more, previousTokens }: Omit<TranscribeEnd, "consumedSamples"> & { readonly more: boolean },
  out: Outlet<"transcription">,
): Effect.fn.Return<TranscribedPiece, EngineError> {
  const { model } = loaded
  const seconds = piece.samples.length / model.features.rateHz
  const conditioning = previousTokens.length > 0 ? previousTokens : encodeHint(model, request.prompt)
  const timestamps = request.timestamps ?? true
  const caption = request.caption === true
  const translate = request.translate === true
  const prompt = promptFor(loaded, language, piece, conditioning, { timestamps, caption, translate })
  const written = translate ? "en" : language
  const { expected } = piece
  const draft = request.draft ?? []
  const keywords = loaded.keywords.of(request.keywords)
  const read = yield* readPrompt(model, loaded.decoder, piece.hidden, prompt, {
    timestamps,
    draft,
    expected,
    keywords,
  })
  const { logprobs, tokens, temperature, measures } = yield* decodeWindow(loaded, read, request)
  loaded.decoder.end(read.output)
  if (Fallback.isSilence(measures)) {
    return { consumedSamples: consumedOf(loaded, request, piece, seconds), previousTokens, tokens: [] }
  }
  const decoded = segmentsOf(tokens, model.layout, seconds)
  const consumedSamples = consumedOf(loaded, request, piece, decoded.consumedSeconds)
  const texts = new SegmentTexts(model.bytesOf, written, previousTokens)
  // Segments have the text tokens in their order, without the times between them.
  const ofText = logprobs.filter((_, i) => tokens[i]! < model.layout.endOfText)
  const spoken = decoded.segments.flatMap((segment) => segment.tokens)
  const times = request.words
    ? yield* tokenTimes(
        model,
        loaded.decoder,
        piece.hidden,
        promptOfTimes(loaded, language, piece, translate),
        spoken,
        seconds,
      )
    : undefined
  let taken = 0
  const segments = decoded.segments.flatMap((segment): ReadonlyArray<Segment> => {
    const text = texts.next(segment.tokens)
    const shown = keywords?.written(text) ?? text
    const first = taken
    taken += segment.tokens.length
    if (text === "") return []
    const { end, start } = segment
    return [
      {
        start,
        end,
        text: shown,
        tokens: segment.tokens,
        temperature,
        ...measures,
        ...(request.words
          ? {
              words:
                (times === undefined
                  ? undefined
                  : alignedWords(model, segment, times.slice(first, taken + 1), { text, shown }, written)) ??
                interpolatedWords(shown, start, end, written),
            }
          : {}),
        ...(request.logprobs === true
          ? {
              logprobs: segment.tokens.map((token, i) => ({
                bytes: [...model.bytesOf([token])],
                logprob: ofText[first + i]!,
              })),
            }
          : {}),
        ...(piece.at === 0 ? {} : { windowAt: piece.at }),
      },
    ]
  })
  for (const [i, segment] of segments.entries()) {
    if (out.paused()) yield* out.resumed
    out.push(more && i === segments.length - 1 ? { ...segment, finishedSamples: consumedSamples } : segment)
  }
  return {
    consumedSamples,
    previousTokens:
      temperature > Fallback.conditioningTemperatureLimit
        ? []
        : [...conditioning, ...spoken].slice(-conditioningLimit(model)),
    tokens,
  }
})

export const transcribe = Effect.fnUntraced(function* (
  loaded: LoadedWhisper,
  request: TranscribeRequest,
  out: Outlet<"transcription">,
): Effect.fn.Return<TranscribeEnd, EngineError> {
  const samples = pieceOf(loaded, request.samples, request.last)
  const hidden = yield* Effect.cached(encode(loaded, samples, request))
  const language = yield* languageOf(loaded, request, hidden)
  out.started({ language })
  let { previousTokens } = request
  if (samples.length === 0) return { language, consumedSamples: 0, previousTokens }
  const pieces = yield* piecesOf(loaded, request, language, { at: 0, samples, hidden: yield* hidden })
  for (const [i, piece] of pieces.entries()) {
    const more = i < pieces.length - 1
    const decoded = yield* transcribePiece(loaded, request, piece, { language, more, previousTokens }, out)
    const { consumedSamples } = decoded
    previousTokens = decoded.previousTokens
    // If the piece was not consumed whole, the next window does not begin where the next piece does.
    if (more && consumedSamples === pieces[i + 1]!.at) continue
    return { language, consumedSamples, previousTokens, ...(i === 0 ? { tokens: decoded.tokens } : {}) }
  }
  return yield* Effect.die(new Error("a window without pieces"))
})
