// Which tokens may come next: pure logit processors on one row of logits that set forbidden tokens to −Infinity.
// Applied at every step. They know no ONNX, audio or sampling.
//
// Source: the reference decoder's rules (pairs, monotony, first timestamp, timestamp preference).
import { maxOf } from "../../shared/listening/Sampling.ts"

export interface TokenLayout {
  /** End of text; every id below it is text, every id from it to `timestampBegin` is a control token. */
  readonly endOfText: number
  /** The id of `<|0.00|>`; timestamps are the ids from here to the end of the vocabulary. */
  readonly timestampBegin: number
  /** Largest first timestamp, in timestamp steps from the start of the window. */
  readonly maxInitialTimestamp: number
}

const forbidden = Number.NEGATIVE_INFINITY
/** Far above the rounding error of a sum of exponentials in double precision. */
const rounding = 1e-6

/** Forbids all control tokens except end of text, whatever a configuration lists. */
export const suppressControls = (logits: Float32Array, layout: TokenLayout): void => {
  logits.fill(forbidden, layout.endOfText + 1, layout.timestampBegin)
}

export const suppress = (logits: Float32Array, ids: ReadonlyArray<number>): void => {
  for (const id of ids) if (id < logits.length) logits[id] = forbidden
}

export const suppressTimestamps = (logits: Float32Array, layout: TokenLayout): void => {
  logits.fill(forbidden, layout.timestampBegin)
}

/** `sampled`: the tokens of this window so far, without the prompt. */
export const applyTimestampRules = (
  logits: Float32Array,
  sampled: ReadonlyArray<number>,
  layout: TokenLayout,
): void => {
  const { endOfText, timestampBegin, maxInitialTimestamp } = layout
  const count = sampled.length
  if (count === 0) {
    logits.fill(forbidden, 0, timestampBegin)
    logits.fill(forbidden, timestampBegin + maxInitialTimestamp + 1)
    return
  }
  const afterTimestamp = sampled[count - 1]! >= timestampBegin
  const afterPair = afterTimestamp && (count < 2 || sampled[count - 2]! >= timestampBegin)
  if (afterPair) logits.fill(forbidden, timestampBegin)
  else if (afterTimestamp) logits.fill(forbidden, 0, endOfText)
  const last = lastTimestamp(sampled, timestampBegin)
  if (last !== undefined) {
    // A segment's start may equal the end of the segment before; its own end must be later than its start.
    const lowest = afterTimestamp && !afterPair ? last : last + 1
    logits.fill(forbidden, timestampBegin, lowest)
  }
  if (timestampsPreferred(logits, timestampBegin)) logits.fill(forbidden, 0, timestampBegin)
}

const lastTimestamp = (sampled: ReadonlyArray<number>, timestampBegin: number): number | undefined => {
  for (let i = sampled.length - 1; i >= 0; i--) if (sampled[i]! >= timestampBegin) return sampled[i]
  return undefined
}

/** True when all timestamps together are more probable than the best other token. */
const timestampsPreferred = (logits: Float32Array, timestampBegin: number): boolean => {
  const bestText = maxOf(logits, 0, timestampBegin)
  const bestTime = maxOf(logits, timestampBegin, logits.length)
  if (bestTime === forbidden) return false
  if (bestTime > bestText) return true
  // Their sum is at most their number times the best one. This usually decides, without 1,500 exponentials a token.
  if (bestTime + Math.log(logits.length - timestampBegin) + rounding < bestText) return false
  let sum = 0
  for (let i = timestampBegin; i < logits.length; i++) sum += Math.exp(logits[i]! - bestTime)
  return bestTime + Math.log(sum) > bestText
}
