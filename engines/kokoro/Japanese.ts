// Japanese: a text → words with their pronunciation in kana → symbols of the voices (Kana.ts).
import { ifInstalled } from "../shared/files/OptionalPackage.ts"
import { kanaSymbols } from "./Kana.ts"

export const japanesePackage = "lindera-wasm-nodejs-ipadic"

/** Symbols of kana and kanji, a space between words. What has no reading is left out. */
export type JapaneseSymbols = (text: string) => string

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
  /** In katakana, "ー" for long vowels; "*" or absent for an unknown word. */
  readonly pronunciation?: string
}

/** Undefined where the package is not installed. */
export const loadJapanese = ifInstalled(japanesePackage, async (): Promise<JapaneseSymbols> => {
  const { TokenizerBuilder } = await import("lindera-wasm-nodejs-ipadic")
  const builder = new TokenizerBuilder()
  builder.setDictionary("embedded://ipadic")
  builder.setMode("normal")
  const analyser = builder.build()
  return (text) =>
    wordSymbols(
      (analyser.tokenize(text) as ReadonlyArray<Token>).map(({ pronunciation = "*", surface }) =>
        pronunciation === "*" ? surface : pronunciation,
      ),
    )
})
