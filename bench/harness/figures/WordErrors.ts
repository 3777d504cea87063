// Word error rate: edits between two word sequences divided by the reference's length. Pure.

export interface TranscribedText {
  /** The text of the recording. */
  readonly spoken: string
  /** What the model transcribed. */
  readonly transcribed: string
}

/** Scripts without spaces between words: each character counts as a word, so the rate of errors is that of characters. */
const spaceless = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu

/** Lower-case words of the letters, marks, digits and apostrophes of any script; everything else is removed. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFC")
    .toLowerCase()
    .replaceAll("’", "'")
    .replaceAll(/[^\p{L}\p{M}\p{N}'\s]/gu, "")
    .replaceAll(spaceless, " $& ")
    .split(/\s+/)
    .filter((word) => word !== "")

/** The least number of inserted, removed and replaced words that turns `from` into `to` (Levenshtein distance). */
const edits = (from: ReadonlyArray<string>, to: ReadonlyArray<string>): number => {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, word] of from.entries()) {
    const next = [i + 1]
    for (const [j, other] of to.entries()) {
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + (word === other ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

export interface WordErrors {
  /** Inserted, removed and replaced words. */
  readonly wrong: number
  /** Words of the reference. */
  readonly words: number
}

export const wordErrorsOf = ({ spoken, transcribed }: TranscribedText): WordErrors => {
  const reference = wordsOf(spoken)
  return { wrong: edits(reference, wordsOf(transcribed)), words: reference.length }
}

/** Percent, over all pairs together, so that long sentences have more weight. NaN for no pairs. */
export const wordErrorPercent = (pairs: ReadonlyArray<TranscribedText>): number => {
  const all = pairs.map(wordErrorsOf)
  const sum = (part: (one: WordErrors) => number) => all.reduce((total, one) => total + part(one), 0)
  return (100 * sum(({ wrong }) => wrong)) / sum(({ words }) => words)
}
