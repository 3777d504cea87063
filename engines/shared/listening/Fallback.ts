// When a window is decoded again at a higher temperature, and when it counts as silence. Pure decisions on the
// numbers of one attempt; called by the engine after every attempt.
//
// Source: the reference transcriber's thresholds.
import { deflateSync } from "node:zlib"

export const COMPRESSION_RATIO_LIMIT = 2.4
export const LOGPROB_LIMIT = -1
export const NO_SPEECH_LIMIT = 0.6
/** An accepted temperature above this makes the next window forget the previous text. */
export const CONDITIONING_TEMPERATURE_LIMIT = 0.5
const LADDER = [0, 0.2, 0.4, 0.6, 0.8, 1] as const

export interface Measures {
  /** UTF-8 bytes over deflated bytes; loops compress well. */
  readonly compressionRatio: number
  /** Mean natural log-probability of the sampled tokens, end of text included. */
  readonly avgLogprob: number
  readonly noSpeechProb: number
}

/** The temperatures to try in turn; a request's own temperature is the first. */
export const temperatures = (requested: number): ReadonlyArray<number> => [
  requested,
  ...LADDER.filter((temperature) => temperature > requested),
]

/** Silence: probably no speech, and the text is not confident enough to contradict it. */
export const isSilence = (measures: Measures): boolean =>
  measures.noSpeechProb > NO_SPEECH_LIMIT && measures.avgLogprob <= LOGPROB_LIMIT

export const needsRetry = (measures: Measures): boolean =>
  !isSilence(measures) &&
  (measures.compressionRatio > COMPRESSION_RATIO_LIMIT || measures.avgLogprob < LOGPROB_LIMIT)

export const compressionRatio = (text: string): number => {
  const bytes = Buffer.from(text, "utf8")
  return bytes.length / deflateSync(bytes).length
}
