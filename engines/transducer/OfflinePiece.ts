// A window of audio transcribed at once, by a model that hears whole utterances. Long audio is cut at quiet places into windows that overlap: of
// the first and the last two seconds of a window only the frames on its side of the cut count, so the encoder and the decoder know what is around a cut.
import * as Effect from "effect/Effect"
import type { EngineError } from "../protocol/Engine.ts"
import type { KeywordSearch } from "../shared/listening/KeywordSearch.ts"
import { firstPiece } from "../shared/listening/QuietPoint.ts"
import { decode, nothingDecoded, type Rules, settle, type TimedToken } from "./decoding/Greedy.ts"
import type { OfflineEncoder } from "./Encoders.ts"
import type { TransducerScorer } from "./Scorers.ts"
import { rateHz } from "./TransducerFiles.ts"

interface OfflineModel {
  readonly encoder: OfflineEncoder
  readonly scorer: TransducerScorer
  readonly rules: Rules
  readonly pieceSeconds: number
  /** Looks for the phrases of the request. */
  readonly search: KeywordSearch | undefined
}

interface HeardWindow {
  /** Frames are counted from the beginning of the window. */
  readonly tokens: ReadonlyArray<TimedToken>
  readonly consumedSamples: number
  /** Where the tokens end: the next window hears the audio before it again, as context. */
  readonly heardSamples: number
  /** Given to the request for the next window; empty at the end of the audio. */
  readonly previousTokens: ReadonlyArray<number>
}

/** Audio on either side of a cut that both windows hear, seconds: 25 encoder frames. A guess. */
const contextSeconds = 2
/** Part of the longest piece in which a quiet place is searched, at most so many seconds. */
const searchPart = 1 / 3
const searchSeconds = 5
/** A token that both windows have within so many frames of the cut is one. */
const sameFrames = 2

/** `previousTokens` of the next window: the last token, -1 if there was none, and its distance to the cut in frames. */
const carriedOver = (tokens: ReadonlyArray<TimedToken>, cut: number): ReadonlyArray<number> => {
  const last = tokens.at(-1)
  return last === undefined ? [-1, 0] : [last.token, cut - last.frame]
}

export const hearWindow = Effect.fnUntraced(function* (
  { encoder, pieceSeconds, ...decoding }: OfflineModel,
  samples: Float32Array,
  last: boolean,
  previousTokens: ReadonlyArray<number>,
): Effect.fn.Return<HeardWindow, EngineError> {
  const frameSamples = Math.round(encoder.frameSeconds * rateHz)
  const contextFrames = Math.round((contextSeconds * rateHz) / frameSamples)
  const contextSamples = contextFrames * frameSamples
  const longest = Math.min(samples.length, Math.floor(pieceSeconds * rateHz))
  const isWhole = last && samples.length <= longest
  // Only so many samples decide about the cut, whatever follows.
  const searched = samples.subarray(0, Math.max(0, longest - contextSamples))
  const quiet = firstPiece(searched, {
    maxSamples: searched.length,
    searchSamples: Math.floor(Math.min(searchSeconds, pieceSeconds * searchPart) * rateHz),
    rateHz,
    last: false,
  })
  const cutFrame = Math.floor(quiet / frameSamples)
  // Windows that are too short to overlap are heard as they are.
  const isCut = !isWhole && cutFrame > 2 * contextFrames
  const audio = isCut
    ? samples.subarray(0, cutFrame * frameSamples + contextSamples)
    : samples.subarray(0, longest)
  const frames = yield* encoder.encode(audio)
  const greedy = yield* decode(
    nothingDecoded(decoding.scorer.start),
    0,
    frames.count,
    frames.column,
    decoding,
  )
  const decoded = yield* settle(greedy, frames.count, decoding)
  const [before, distance = 0] = previousTokens
  const first = before === undefined ? 0 : contextFrames
  const tokens = decoded.tokens.filter(({ frame }) => frame >= first && (!isCut || frame < cutFrame))
  const [begin] = tokens
  if (begin !== undefined && begin.token === before && distance + begin.frame - first <= sameFrames)
    tokens.shift()
  return {
    tokens,
    heardSamples: isCut ? cutFrame * frameSamples : audio.length,
    consumedSamples: isCut ? cutFrame * frameSamples - contextSamples : audio.length,
    previousTokens: isCut ? carriedOver(tokens, cutFrame) : [],
  }
})
