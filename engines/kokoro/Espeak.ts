// eSpeak NG through `phonemizer`: words in ordinary spelling → IPA. Called with one clause at a time,
// because a call blocks the thread for its whole text (about 4 ms a sentence, measured).
import { ifInstalled } from "../shared/files/OptionalPackage.ts"

/**
 * The two accents. `phonemizer` 1.2.1 contains the English dictionaries only, and eSpeak keeps its previous voice when
 * it gets an unknown name, so a voice is one of these two and never a caller's string.
 */
export type EspeakVoice = "en-us" | "en"

/** Turns the words of one clause into IPA. */
export type Phonemizer<Voice extends string> = (clause: string, voice: Voice) => Promise<string>

/**
 * eSpeak drops the end of a word above about 160 bytes (measured: 4096 letters gave 970 symbols), so longer words
 * are split into parts of this many characters.
 */
const maxWord = 40

export const splitLongWords = (clause: string): string =>
  clause.replace(/[^\s-]{41,}/gu, (word) => {
    const letters = [...word]
    const parts: Array<string> = []
    for (let at = 0; at < letters.length; at += maxWord) parts.push(letters.slice(at, at + maxWord).join(""))
    return parts.join(" ")
  })

/** Removes eSpeak's marks of a change of language such as "(fr)": they have no sound, and "(" is a symbol of the model. */
export const withoutLanguageMarks = (ipa: string): string => ipa.replace(/\([a-z-]+\)/g, "")

export type EnglishPhonemes = Phonemizer<EspeakVoice>

/** The package of the English front end, which contains GPL code. */
export const englishPackage = "phonemizer"

/** Undefined where the package is not installed. */
export const loadEnglish = ifInstalled(englishPackage, async (): Promise<EnglishPhonemes> => {
  const { phonemize } = await import("phonemizer")
  return async (clause, voice) =>
    withoutLanguageMarks((await phonemize(splitLongWords(clause), voice)).join(" "))
})
