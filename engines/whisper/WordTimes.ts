// Times of the words of a window, by the attention of the decoder's alignment heads: one more decoder call reads the window's text, and its
// attention to the audio says when each token was said. For exports that return cross attentions; others interpolate.
import * as Effect from "effect/Effect"
import type { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { splitWords, type TimedWord } from "../shared/listening/Words.ts"
import type { DecoderGraph } from "./DecoderGraph.ts"
import { tokenFrames } from "./rules/Alignment.ts"
import type { WhisperModel } from "./WhisperModel.ts"

/** Text tokens of a segment, and its times as the model wrote them. */
interface AlignedSegment {
  readonly tokens: ReadonlyArray<number>
  readonly start: number
  readonly end: number
}

/**
 * When each token of the segments begins, and where the last one ends, seconds. Undefined if the graph has no cross attentions, or the text
 * is too long for one call.
 */
export const tokenTimes = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  hidden: Tensor,
  /** Tokens before the text, without timestamps. */
  prompt: ReadonlyArray<number>,
  tokens: ReadonlyArray<number>,
  seconds: number,
): Effect.fn.Return<ReadonlyArray<number> | undefined, EngineError> {
  const { attend } = graph
  const input = [...prompt, ...tokens, model.layout.endOfText]
  if (attend === undefined || tokens.length === 0 || input.length > model.targetPositions) return undefined
  const frameSeconds = model.windowSamples / model.features.rateHz / model.sourcePositions
  const frames = Math.min(hidden.dims[1]!, Math.max(1, Math.ceil(seconds / frameSeconds)))
  const heads = yield* attend(input, hidden)
  return tokenFrames(heads, prompt.length, tokens.length, frames).map((frame) =>
    Math.min(seconds, frame * frameSeconds),
  )
})

/**
 * The words of a segment, inside its times. `times`: those of its tokens, and one more. `shown`: the text with other capitals. Undefined if the text is not what the tokens spell:
 * a character was divided between two segments.
 */
export const alignedWords = (
  { bytesOf }: WhisperModel,
  { end, start, tokens }: AlignedSegment,
  times: ReadonlyArray<number>,
  { shown, text }: { readonly text: string; readonly shown: string },
  language: string,
): ReadonlyArray<TimedWord> | undefined => {
  const spelled = tokens.map((token) => bytesOf([token]))
  const bytes = Buffer.concat(spelled)
  const ends: Array<number> = []
  let length = 0
  for (const { length: more } of spelled) {
    length += more
    ends.push(length)
  }
  const words: Array<TimedWord> = []
  let at = 0
  let earliest = start
  const written = splitWords(shown, language)
  for (const [i, word] of splitWords(text, language).entries()) {
    const found = bytes.indexOf(word, at, "utf8")
    if (found === -1) return undefined
    at = found + Buffer.byteLength(word)
    const first = ends.findIndex((tokenEnd) => tokenEnd > found)
    const last = ends.findIndex((tokenEnd) => tokenEnd >= at)
    const from = Math.min(end, Math.max(earliest, times[first]!))
    const to = Math.min(end, Math.max(from, times[last + 1]!))
    words.push({ word: written[i] ?? word, start: from, end: to })
    earliest = to
  }
  return words
}
