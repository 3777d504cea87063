// When each word of a piece is heard, from the durations of its symbols. Pure.
import type { SpokenWord } from "#domain/audio/TimedWords.ts"
import type { PieceWord } from "./Pieces.ts"

/** A piece as samples. */
interface MadePiece {
  /** Samples of the model's waveform. */
  readonly waveSamples: number
  /** Samples of it that were left out at its beginning. */
  readonly from: number
  /** Samples that are played. */
  readonly samples: number
  /** Samples of the reply before it. */
  readonly startsAt: number
}

/** The words of a piece whose symbols are its characters, for models that take text. */
export const writtenPieceWords = (text: string): ReadonlyArray<PieceWord> =>
  [...text.matchAll(/\S+/g)].map(({ 0: word, index }) => ({
    text: word,
    from: index,
    to: index + word.length,
  }))

/**
 * `ids`: the number of ids that the graph got, which are the piece's symbols and one more at either end. `durations`: one for each
 * id, in any unit; undefined where the graph tells none: then all symbols count as equally long, which is exact to about a word.
 */
export const spokenWords = (
  words: ReadonlyArray<PieceWord>,
  ids: number,
  durations: Float32Array | undefined,
  { from, samples, startsAt, waveSamples }: MadePiece,
): ReadonlyArray<SpokenWord> => {
  /** End of each id, in the unit of the durations. */
  const ends = new Float64Array(ids)
  let total = 0
  for (let id = 0; id < ids; id++) {
    total += Math.max(0, durations === undefined ? 1 : durations[id]!)
    ends[id] = total
  }
  if (!(total > 0 && total < Number.POSITIVE_INFINITY)) return []
  const at = (end: number): number => {
    const inPiece = Math.round((end / total) * waveSamples) - from
    return startsAt + Math.max(0, Math.min(samples, inPiece))
  }
  // Symbol k is the id k + 1, so it begins where the id k ends.
  return words.map(({ from: first, text, to }) => ({ text, start: at(ends[first]!), end: at(ends[to]!) }))
}
