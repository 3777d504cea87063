// Decides after each attempt whether a window is decoded again at a higher temperature, and whether it is silence.
// Pure functions of the measures of one attempt.
//
// Source: the reference transcriber's thresholds.
import { deflateSync } from "node:zlib"

export const compressionRatioLimit = 2.4
const logprobLimit = -1
const noSpeechLimit = 0.6
/** After a window accepted at a higher temperature, the next window gets no earlier text. */
export const conditioningTemperatureLimit = 0.5
const ladder = [0, 0.2, 0.4, 0.6, 0.8, 1] as const

export interface Measures {
  /** UTF-8 bytes divided by deflated bytes; a repetition loop compresses well. */
  readonly compressionRatio: number
  /** Mean natural log-probability of the sampled tokens, including end of text. */
  readonly avgLogprob: number
  readonly noSpeechProb: number
}

/** The temperatures to try in order; the first is the request's. */
export const temperatures = (requested: number): ReadonlyArray<number> => [
  requested,
  ...ladder.filter((temperature) => temperature > requested),
]

/** Silence: probably no speech, and the text is not confident enough to override that. */
export const isSilence = (measures: Measures): boolean =>
  measures.noSpeechProb > noSpeechLimit && measures.avgLogprob <= logprobLimit

export const needsRetry = (measures: Measures): boolean =>
  !isSilence(measures) &&
  (measures.compressionRatio > compressionRatioLimit || measures.avgLogprob < logprobLimit)

export const compressionRatio = (text: string): number => {
  const bytes = Buffer.from(text, "utf8")
  return bytes.length / deflateSync(bytes).length
}
