// Word times inside one segment, for models that do not say when a token was said. These times are
// INTERPOLATED: each word gets a share of its segment in proportion to its length. They are ordered and inside
// the segment, but exact only for an even pace of speech; docs and API must call them approximate. Pure.

export interface TimedWord {
  readonly word: string
  readonly start: number
  readonly end: number
}

/** Languages written without spaces between words; Intl.Segmenter finds the words. */
const unspaced = new Set(["zh", "yue", "ja", "th", "lo", "km", "my", "bo"])

export const isUnspaced = (language: string): boolean => unspaced.has(language)

export const splitWords = (text: string, language: string): ReadonlyArray<string> => {
  if (!isUnspaced(language)) return text.split(/\s+/u).filter((word) => word !== "")
  const words: Array<string> = []
  for (const { segment, isWordLike } of new Intl.Segmenter(language, { granularity: "word" }).segment(text)) {
    const part = segment.trim()
    if (part === "") continue
    // Punctuation belongs to the word before it.
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
  // Letters plus one, because the shortest word takes some time too.
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
