// A piece of audio transcribed chunk by chunk. What a chunk says depends only on the audio until it, so the text of a live session grows and is
// never taken back, and a file is transcribed in the same chunks.
//
// A piece begins with fresh states and ends at a pause (PieceEnd), or with the audio. At the end of the audio the rest and a moment of silence
// are transcribed beside the kept states, because speech may still go on.
import * as Effect from "effect/Effect"
import type { EngineError } from "../protocol/Engine.ts"
import type { KeywordSearch } from "../shared/listening/KeywordSearch.ts"
import {
  type Decoded,
  decode,
  lastingTokens,
  nothingDecoded,
  type Rules,
  settle,
  type TimedToken,
} from "./decoding/Greedy.ts"
import { endsPiece } from "./decoding/PieceEnd.ts"
import type { Caches, StreamingEncoder } from "./Encoders.ts"
import type { Prediction, TransducerScorer } from "./Scorers.ts"
import type { Streams } from "./Streams.ts"
import { rateHz } from "./TransducerFiles.ts"

/** How far a piece has been transcribed. Immutable. */
export interface Progress {
  readonly prompt: number
  readonly chunks: number
  readonly caches: Caches
  readonly decoded: Decoded<Prediction>
  /** The piece has ended behind these chunks. */
  readonly hasEnded: boolean
}

interface StreamedModel {
  readonly encoder: StreamingEncoder
  readonly scorer: TransducerScorer
  readonly rules: Rules
  readonly pieceSeconds: number
  readonly streams: Streams<Progress>
  /** Looks for the phrases of the request. */
  readonly search: KeywordSearch | undefined
}

interface PieceRequest {
  /** From the beginning of the piece on. */
  readonly samples: Float32Array
  readonly stream: number | undefined
  readonly prompt: number
  /** Only what later audio cannot change: whole chunks. */
  readonly caption: boolean
  /** No audio follows. */
  readonly last: boolean
}

interface HeardPiece {
  readonly tokens: ReadonlyArray<TimedToken>
  readonly consumedSamples: number
}

const nextChunk = Effect.fnUntraced(function* (
  { encoder, pieceSeconds, ...decoding }: StreamedModel,
  samples: Float32Array,
  from: Progress,
): Effect.fn.Return<Progress, EngineError> {
  const { caches, frames } = yield* encoder.chunk(samples, from.chunks, from.caches, from.prompt)
  const first = from.chunks * encoder.framesPerChunk
  // A chunk that returns another number of frames would shift the times of all later ones.
  const count = Math.min(frames.count, encoder.framesPerChunk)
  const decoded = yield* decode(from.decoded, first, count, frames.column, decoding)
  const chunks = from.chunks + 1
  const passed = chunks * encoder.framesPerChunk
  const spoken = decoded.tokens.at(-1)
  const pause = (passed - (spoken === undefined ? 0 : spoken.frame + 1)) * encoder.frameSeconds
  const hasEnded = endsPiece((chunks * encoder.chunkSamples) / rateHz, pause, pieceSeconds)
  if (!hasEnded) return { prompt: from.prompt, chunks, caches, decoded, hasEnded }
  return {
    prompt: from.prompt,
    chunks,
    caches,
    decoded: yield* settle(decoded, first + count, decoding),
    hasEnded,
  }
})

/** The rest of the audio and the silence behind it, as far as whole chunks. */
const withTail = ({ aheadSamples, chunkSamples, tailSeconds }: StreamingEncoder, samples: Float32Array) => {
  const chunks = Math.ceil((samples.length + tailSeconds * rateHz) / chunkSamples)
  const padded = new Float32Array(chunks * chunkSamples + aheadSamples)
  padded.set(samples)
  return { chunks, padded }
}

export const hearPiece = Effect.fnUntraced(function* (
  model: StreamedModel,
  { caption, last, prompt, samples, stream }: PieceRequest,
): Effect.fn.Return<HeardPiece, EngineError> {
  const { encoder, scorer, streams } = model
  const { aheadSamples, chunkSamples } = encoder
  const kept = streams.get(stream)
  // Audio that was cut off at its end since then is no beginning of this one.
  let progress: Progress =
    kept?.prompt === prompt &&
    (kept.chunks === 0 || kept.chunks * chunkSamples + aheadSamples <= samples.length)
      ? kept
      : { prompt, chunks: 0, caches: encoder.start, decoded: nothingDecoded(scorer.start), hasEnded: false }
  while (!progress.hasEnded && (progress.chunks + 1) * chunkSamples + aheadSamples <= samples.length) {
    // A call that has begun cannot be ended, so a request that is interrupted loses nothing: the chunk is kept for the next one.
    progress = yield* Effect.uninterruptible(
      Effect.tap(nextChunk(model, samples, progress), (done) =>
        Effect.sync(() => streams.keep(stream, done)),
      ),
    )
  }
  const tokens = lastingTokens(progress.decoded)
  const heard = progress.chunks * chunkSamples
  if (progress.hasEnded) return { tokens, consumedSamples: heard }
  if (caption) return { tokens, consumedSamples: samples.length }
  // Never with windows as long as the engine's facts say.
  if (!last) return { tokens, consumedSamples: heard === 0 ? samples.length : heard }
  const { chunks, padded } = withTail(encoder, samples)
  let rest = progress
  while (rest.chunks < chunks) rest = yield* nextChunk(model, padded, rest)
  const settled = yield* settle(rest.decoded, rest.chunks * encoder.framesPerChunk, model)
  return { tokens: settled.tokens, consumedSamples: samples.length }
})
