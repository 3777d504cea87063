// Word times inside one segment. The published decoder graphs give out no attention weights, so these times are
// INTERPOLATED: each word takes a share of its segment in proportion to its length. They are ordered and inside
// the segment, but only as good as an even pace of speech is; docs and API must call them approximate. Pure.

export interface TimedWord {
  readonly word: string
  readonly start: number
  readonly end: number
}

/** Written without spaces between words; Intl.Segmenter finds them. */
const UNSPACED = new Set(["zh", "yue", "ja", "th", "lo", "km", "my", "bo"])

export const isUnspaced = (language: string): boolean => UNSPACED.has(language)

const splitWords = (text: string, language: string): ReadonlyArray<string> => {
  if (!isUnspaced(language)) return text.split(/\s+/u).filter((word) => word !== "")
  const words: Array<string> = []
  for (const { segment, isWordLike } of new Intl.Segmenter(language, { granularity: "word" }).segment(text)) {
    const part = segment.trim()
    if (part === "") continue
    // Punctuation belongs to the word in front of it.
    if (isWordLike === false && words.length > 0) words[words.length - 1] += part
    else words.push(part)
  }
  return words
}

export const interpolatedWords = (
  text: string,
  start: number,
  end: number,
  language: string,
): ReadonlyArray<TimedWord> => {
  const words = splitWords(text, language)
  // One more than the letters: a word costs a little time however short it is.
  const weights = words.map((word) => Array.from(word).length + 1)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const at = (weight: number) => start + ((end - start) * weight) / total
  let spent = 0
  return words.map((word, i) => {
    const from = at(spent)
    spent += weights[i]!
    return { word, start: from, end: i === words.length - 1 ? end : at(spent) }
  })
}
