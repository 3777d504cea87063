// The fake transcription: a made-up word for every 100 ms that is not silent, by a rule as intricate as that of a real
// engine. A word depends on the sound after it (so more audio changes the text), on the text before the window, and on the
// language; pieces are cut at quiet places, and some windows are consumed only in part. So a gateway that loses, doubles
// or reorders anything produces another text. Pure.
import type { Segment, TranscribeEnd, TranscribeRequest } from "../protocol/Engine.ts"
import { firstPiece } from "../shared/listening/QuietPoint.ts"
import { interpolatedWords, isUnspaced } from "../shared/listening/Words.ts"
import { withoutReplacement } from "../shared/text/Utf8Holdback.ts"

const sampleRateHz = 16_000
const blockSamples = sampleRateHz / 10
/** As in the Whisper engine: a shorter rest of a file is skipped. */
const shortestRestSeconds = 0.25
/** A block whose peak is lower is silence. */
const quiet = 0.01

/** Sample values that make the engine crash, hang or fail. */
export const marks = { crash: 31_001 / 32_768, hang: 31_003 / 32_768, fail: 31_005 / 32_768 } as const

export const closedSeconds = (pieceSeconds: number): number => pieceSeconds + shortestRestSeconds

const mix = (state: number, value: number): number => (Math.imul(state ^ value, 0x01000193) + 0x9e37) >>> 0

const hashOf = (samples: Float32Array): number => {
  let hash = 0x811c9dc5
  for (const sample of samples) hash = mix(hash, Math.round(sample * 32_768))
  return hash
}

const isQuiet = (samples: Float32Array): boolean => samples.every((sample) => Math.abs(sample) < quiet)

const utf8 = new TextEncoder()

const consonants = "bdfgklmnprstvz"
const vowels = "aeiou"

const madeUp = (token: number): string => {
  let word = ""
  for (let i = 0, rest = token; i < 2; i++) {
    word += consonants[rest % consonants.length]! + vowels[(rest >>> 8) % vowels.length]!
    rest = mix(rest, i)
  }
  return word
}

/** A hash of the preceding text, the language and the keywords. */
const contextOf = (request: TranscribeRequest): number => {
  let context = [...(request.language ?? "en")].reduce((sum, letter) => mix(sum, letter.codePointAt(0)!), 7)
  if (request.previousTokens.length > 0) return request.previousTokens.reduce(mix, context)
  for (const letter of [request.prompt, ...(request.keywords ?? [])].join("\n"))
    context = mix(context, letter.codePointAt(0)!)
  return context
}

interface FakeTranscript {
  readonly segments: ReadonlyArray<Segment>
  readonly end: TranscribeEnd
}

/**
 * `words` replace the made-up ones: for texts in any script, with or without punctuation.
 */
export const fakeTranscript = (
  request: TranscribeRequest,
  pieceSeconds: number,
  words?: ReadonlyArray<string>,
): FakeTranscript => {
  const maxSamples = Math.floor(pieceSeconds * sampleRateHz)
  const options = {
    maxSamples,
    searchSamples: Math.floor(maxSamples / 2),
    rateHz: sampleRateHz,
    last: request.last,
  }
  const isCaption = request.caption === true
  const piece = isCaption
    ? request.samples
    : request.samples.subarray(0, firstPiece(request.samples, options))
  const context = contextOf(request)
  // A third of the longer pieces leave their end to the next window, as a real engine does with an open sentence.
  const pieceHash = hashOf(piece)
  const partly = !isCaption && pieceHash % 3 === 0 && piece.length > sampleRateHz
  const consumedSamples = partly
    ? Math.floor((piece.length * 0.6) / blockSamples) * blockSamples
    : piece.length
  const tokens: Array<number> = []
  for (let at = 0; at < consumedSamples; at += blockSamples) {
    const block = piece.subarray(at, Math.min(at + blockSamples, consumedSamples))
    if (isQuiet(block)) continue
    const after = piece.subarray(at + blockSamples, at + blockSamples + blockSamples / 4)
    tokens.push(mix(mix(hashOf(block), hashOf(after)), context) % 1_000_003)
  }
  const rest = request.samples.length - consumedSamples
  const swallowed = request.last && rest < shortestRestSeconds * sampleRateHz
  const language = request.language ?? "en"
  const wordOf = (token: number): string =>
    words === undefined ? madeUp(token) : words[token % words.length]!
  const space = isUnspaced(language) ? "" : " "
  const text = withoutReplacement(
    tokens
      .map((token) => space + wordOf(token))
      .join("")
      .toWellFormed(),
  )
  const end = consumedSamples / sampleRateHz
  const segment: Segment = {
    start: 0,
    end,
    text,
    tokens,
    temperature: 0,
    avgLogprob: 0,
    compressionRatio: 1,
    noSpeechProb: 0,
    ...(request.logprobs === true
      ? {
          logprobs: tokens.map((token) => ({
            bytes: [...utf8.encode(space + wordOf(token).toWellFormed())],
            logprob: -(token % 100) / 100,
          })),
        }
      : {}),
    ...(request.words ? { words: interpolatedWords(text, 0, end, language) } : {}),
  }
  return {
    segments: tokens.length === 0 ? [] : [segment],
    end: {
      language,
      consumedSamples: swallowed ? request.samples.length : consumedSamples,
      previousTokens: [...request.previousTokens, ...tokens].slice(-20),
      tokens,
    },
  }
}
