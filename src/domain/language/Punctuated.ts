// Applies a request's `punctuation` to the texts of a file: true adds marks if the model wrote none, false removes
// them. The rules for adding are this project's own and small: a segment is a sentence. Pure. Files and live sessions
// apply it in the same way to each piece of audio, so that both give the same text.
import { hasPunctuation, noText, type Removal, removePunctuation } from "./Punctuation.ts"
import { punctuatedLanguages, sentenceRules } from "./SentenceRules.ts"

/** True adds, false removes, undefined leaves the text as the model wrote it. */
export type PunctuationChoice = boolean | undefined

/** State that earlier pieces of the same file leave. Plain data. */
export interface Punctuating {
  readonly removal: Removal
  /** True once the model has written a mark: it punctuates by itself, and nothing is added from then on. */
  readonly byModel: boolean
}

export const nothingPunctuated: Punctuating = { removal: noText, byModel: false }

/** Why the choice is impossible in a language. Undefined if it is possible, or if the language is not known yet. */
export const punctuationProblem = (
  choice: PunctuationChoice,
  language: string | undefined,
): string | undefined =>
  choice !== true || language === undefined || sentenceRules[language] !== undefined
    ? undefined
    : `cannot be added in ${language}; it can in ${punctuatedLanguages.join(", ")}`

/** The first letter as a capital, if that is a single letter; Dutch capitalizes both letters of "ij". */
const capitalized = (sentence: string, language: string): string => {
  if (language === "nl" && sentence.startsWith("ij")) return `IJ${sentence.slice(2)}`
  const [first = ""] = sentence
  const capital = first.toUpperCase()
  return Array.from(capital).length === 1 ? capital + sentence.slice(first.length) : sentence
}

const startOf = (text: string, language: string, mark: string): string => {
  const begun = text.trimStart()
  return `${text.slice(0, text.length - begun.length)}${mark}${capitalized(begun, language)}`
}

/**
 * The segments of one piece as sentences. In languages with spaces, a segment that the next one continues without a
 * space is not the end of a sentence: it ends inside a word or a number.
 */
const asSentences = (texts: ReadonlyArray<string>, language: string): ReadonlyArray<string> => {
  const rules = sentenceRules[language]
  if (rules === undefined) return texts
  const out = [...texts]
  let first = 0
  for (let last = 0; last < texts.length; last++) {
    const next = texts[last + 1]
    if (rules.spaced && next !== undefined && !/^\s/u.test(next)) continue
    const sentence = texts
      .slice(first, last + 1)
      .join("")
      .trim()
    if (/[\p{L}\p{N}]/u.test(sentence)) {
      const asks = rules.asks.test(sentence.normalize("NFC").toLowerCase())
      out[first] = startOf(out[first]!, language, asks ? (rules.questionStart ?? "") : "")
      out[last] = out[last]!.trimEnd() + (asks ? rules.question : rules.end)
    }
    first = last + 1
  }
  return out
}

/** The texts of one piece's segments with the choice applied, and the state for the next piece. */
export const punctuated = (
  choice: PunctuationChoice,
  language: string,
  texts: ReadonlyArray<string>,
  state: Punctuating,
): readonly [ReadonlyArray<string>, Punctuating] => {
  if (choice === undefined) return [texts, state]
  if (choice) {
    const byModel = state.byModel || texts.some(hasPunctuation)
    return [byModel ? texts : asSentences(texts, language), { ...state, byModel }]
  }
  let { removal } = state
  const shown = texts.map((text) => {
    const [out, next] = removePunctuation(removal, text)
    removal = next
    return out
  })
  return [shown, { ...state, removal }]
}
