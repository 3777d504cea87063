// Tokens of one window → timed segments, and how much of the window is consumed. Pure. Knows no text, audio or
// files: times are seconds from the start of the window.
//
// Source: the reference transcriber's seek rule. Two timestamps in a row close a segment; if the window ends in
// such a pair, speech goes on after it, and the next window starts there. A single timestamp at the end, or
// no pair at all, means that the whole window is consumed.
import type { TokenLayout } from "./TimestampRules.ts"

interface TimedTokens {
  readonly start: number
  readonly end: number
  /** Text tokens only. */
  readonly tokens: ReadonlyArray<number>
}

interface Heard {
  /** Ordered, non-overlapping, inside [0, windowSeconds]; segments without text tokens are left out. */
  readonly segments: ReadonlyArray<TimedTokens>
  readonly consumedSeconds: number
}

/** Seconds between two timestamp ids of a 30 s window cut into 1500 steps. */
const timestampStepSeconds = 0.02

/**
 * Least advance of a window, so that a decoder that keeps closing tiny segments cannot turn a
 * minute of audio into thousands of windows. A guess: shorter than any pause worth keeping.
 */
export const minAdvanceSeconds = 0.5

/** `windowSeconds`: length of the audio in the window, without padding. */
export const segmentsOf = (
  tokens: ReadonlyArray<number>,
  layout: TokenLayout,
  windowSeconds: number,
): Heard => {
  const isTime = (token: number | undefined) => token !== undefined && token >= layout.timestampBegin
  const secondsOf = (token: number) =>
    Math.min(windowSeconds, (token - layout.timestampBegin) * timestampStepSeconds)
  const segments: Array<TimedTokens> = []
  let start = 0
  let text: Array<number> = []
  let pairEnd: number | undefined
  const close = (end: number) => {
    if (text.length > 0) segments.push({ start, end: Math.max(start, end), tokens: text })
    text = []
  }
  tokens.forEach((token, i) => {
    if (!isTime(token)) {
      if (token < layout.endOfText) text.push(token)
      return
    }
    const seconds = secondsOf(token)
    if (isTime(tokens[i - 1])) pairEnd = secondsOf(tokens[i - 1]!)
    close(seconds)
    start = Math.max(start, seconds)
  })
  const endsInTime = isTime(tokens.at(-1))
  const endsInPair = endsInTime && isTime(tokens.at(-2))
  const wholeWindow = pairEnd === undefined || (endsInTime && !endsInPair)
  const consumedSeconds = wholeWindow
    ? windowSeconds
    : Math.min(windowSeconds, Math.max(pairEnd ?? 0, minAdvanceSeconds))
  // Text after the last pair is an unfinished segment: the next window, which starts at the pair, transcribes it again.
  // Without a next window it is kept.
  if (consumedSeconds === windowSeconds) close(windowSeconds)
  return { segments, consumedSeconds }
}
