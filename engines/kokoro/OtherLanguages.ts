// Kokoro's languages beside English: eSpeak's sounds in the published spelling, and text → phoneme fragments.
import type { Fragment } from "../shared/speech/WordSymbols.ts"
import { cleanText } from "../shared/text/CleanText.ts"
import { sentences } from "../shared/text/Sentences.ts"
import { textReader } from "../shared/text/spoken/Languages.ts"
import type { EnglishPhonemes } from "./Espeak.ts"
import type { EspeakLanguages } from "./EspeakLanguages.ts"
import { phonemeFragments } from "./KokoroPhonemes.ts"
import { mixedSymbols } from "./MixedScripts.ts"

/** eSpeak's voice for each language of the published voices that it reads. */
export const espeakVoices: Readonly<Record<string, string>> = {
  es: "es",
  fr: "fr",
  hi: "hi",
  it: "it",
  pt: "pt-br",
}

/** Two letters of one sound → the one symbol that the voices were trained with. */
const ligatures: Readonly<Record<string, string>> = {
  aɪ: "I",
  aʊ: "W",
  dz: "ʣ",
  dʒ: "ʤ",
  eɪ: "A",
  oʊ: "O",
  əʊ: "Q",
  ss: "S",
  ts: "ʦ",
  tʃ: "ʧ",
  ɔɪ: "Y",
}
const ligature = new RegExp(Object.keys(ligatures).join("|"), "gu")

/** @param sounds IPA with "_" between the sounds of a word: only letters of one sound are joined */
export const rewriteSounds = (sounds: string): string =>
  sounds
    .split("_")
    .map((sound) => sound.replace(ligature, (pair) => ligatures[pair]!))
    .join("")
    .replaceAll("-", "")

/** A text of any language but English, clause by clause. */
export async function* languageFragments(
  text: string,
  language: string,
  toPhonemes: (clause: string) => string | Promise<string>,
): AsyncGenerator<Fragment> {
  const reader = textReader(language)
  for (const sentence of sentences(reader.whole(cleanText(text, language)))) {
    yield* phonemeFragments(reader.sentence(sentence), async (clause) => toPhonemes(clause))
  }
}

export const espeakFragments = (
  text: string,
  language: string,
  espeak: EspeakLanguages,
): AsyncGenerator<Fragment> => {
  const voice = espeakVoices[language]!
  return languageFragments(text, language, (clause) => rewriteSounds(espeak.sounds(clause, voice)))
}

/**
 * Chinese or Japanese.
 * @param symbols of the language's own characters
 * @param english reads English words among them; undefined if its package is not installed
 */
export const spacelessFragments = (
  text: string,
  language: "ja" | "zh",
  symbols: (part: string) => string,
  english: EnglishPhonemes | undefined,
): AsyncGenerator<Fragment> =>
  languageFragments(text, language, (clause) => mixedSymbols(clause, symbols, english))
