// Japanese: a text → words with their pronunciation in kana, by the analyser Lindera and its dictionary IPADIC, which are one package →
// symbols of the voices (Kana.ts).
import { ifInstalled } from "../shared/files/OptionalPackage.ts"
import { kanaSymbols } from "./Kana.ts"

export const japanesePackage = "lindera-wasm-nodejs-ipadic"

/** Symbols of kana and kanji, a space between words. What has no reading is left out. */
type JapaneseSymbols = (text: string) => string

/** Words in kana → symbols. "っ" at the end of a word belongs to the next one. */
const wordSymbols = (words: ReadonlyArray<string>): string =>
  words
    .map(kanaSymbols)
    .filter((word) => word !== "")
    .join(" ")
    .replace(/ (?=ʔ)|(?<=ʔ) /g, "")

/** A word as the analyser gives it, of what is read here. */
interface Token {
  readonly surface: string
  readonly partOfSpeech?: string
  /** In katakana, "ー" for most long vowels; "*" or absent for an unknown word. */
  readonly pronunciation?: string
}

/**
 * The published front end has a long vowel in "センセー", from a dictionary that knows it; this one writes "センセイ". Verbs say the "イ", as
 * in "カセイダ", and so do words with kana of their own, as "テイレ".
 */
const pronounced = ({ partOfSpeech, pronunciation = "*", surface }: Token): string => {
  if (pronunciation === "*") return surface
  return partOfSpeech === "名詞" && /^\p{Script=Han}+$/u.test(surface)
    ? pronunciation.replace(/(?<=[エケゲセゼテデネヘベペメレ])イ/g, "ー")
    : pronunciation
}

/** Undefined where the package is not installed. */
export const loadJapanese = ifInstalled(japanesePackage, async (): Promise<JapaneseSymbols> => {
  const { TokenizerBuilder } = await import("lindera-wasm-nodejs-ipadic")
  const builder = new TokenizerBuilder()
  builder.setDictionary("embedded://ipadic")
  builder.setMode("normal")
  const analyser = builder.build()
  return (text) => wordSymbols((analyser.tokenize(text) as ReadonlyArray<Token>).map(pronounced))
})
