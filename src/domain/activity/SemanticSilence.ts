// How long a silence ends a turn of `semantic_vad`: short behind what is probably complete, long behind what is not (protocol 19.1). Pure.

export type Eagerness = "low" | "medium" | "high" | "auto"

interface Lengths {
  /** Where nothing is known of the words, milliseconds. */
  readonly usualMs: number
  /** The completeness from which a turn is complete, and the silence that ends it then. */
  readonly completeFrom: number
  readonly completeMs: number
  /** The silence otherwise: from just below that completeness to none. */
  readonly doubtfulMs: number
  readonly incompleteMs: number
}

/**
 * `usualMs`: guesses. `completeMs` of `auto`: the recogniser, which begins at 80 ms, has to be done twice by then. `doubtfulMs` of it: over
 * the pauses of 300 to 700 ms that are usual within sentences, and what the detector hears late. The rest: guesses around these.
 */
const middle: Lengths = {
  usualMs: 600,
  completeFrom: 0.5,
  completeMs: 240,
  doubtfulMs: 800,
  incompleteMs: 1_200,
}
const lengthsOf: Readonly<Record<Eagerness, Lengths>> = {
  low: { usualMs: 900, completeFrom: 0.8, completeMs: 500, doubtfulMs: 1_000, incompleteMs: 2_000 },
  medium: middle,
  auto: middle,
  high: { usualMs: 350, completeFrom: 0.3, completeMs: 200, doubtfulMs: 500, incompleteMs: 800 },
}

/** `score`: completeness, 0 to 1; undefined: not known. */
export const semanticSilenceMs = (eagerness: Eagerness, score: number | undefined): number => {
  const { completeFrom, completeMs, doubtfulMs, incompleteMs, usualMs } = lengthsOf[eagerness]
  if (score === undefined) return usualMs
  if (score >= completeFrom) return completeMs
  const ms = incompleteMs - (incompleteMs - doubtfulMs) * (score / completeFrom)
  // Whole hops of the detector.
  return Math.round(ms / 10) * 10
}
