// A segment's text as a client reads it. Pure; called by the engine for every segment.
import { withoutPunctuation } from "./Punctuation.ts"
import { isUnspaced } from "./Words.ts"

export interface SegmentTextOptions {
  readonly language: string
  /** First segment of its window. */
  readonly first: boolean
  /** False removes punctuation; true and undefined leave it to the model. */
  readonly punctuation: boolean | undefined
}

/**
 * Segment texts are made to be joined without anything between them: in languages with spaces, the first segment
 * of a window begins with one even where the model left it out.
 */
export const segmentText = (decoded: string, options: SegmentTextOptions): string => {
  const text = options.punctuation === false ? withoutPunctuation(decoded) : decoded
  const needsSpace = options.first && text !== "" && !/^\s/u.test(text) && !isUnspaced(options.language)
  return needsSpace ? ` ${text}` : text
}
