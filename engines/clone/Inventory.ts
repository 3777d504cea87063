// Sounds of other languages → symbols that a model knows: the nearest English sound if it was trained on English
// only, the plain letter if its table merely lacks a variant. Pure.
import type { Symbols } from "../shared/speech/Symbols.ts"

/** "table": every symbol of the table was trained. "english": only those of English were. */
export type Training = "table" | "english"

/** Every symbol that the English front end produces, marks included (measured on 2,311 words in both accents). */
const english = new Set(' ˈˌːɪtnsɹldkəiɛpmzʊɚæaefobɑʃɔʌwvᵻuɡŋʒɾhɜjθɐðʔɒ;:,.!?—…"()“”')

/** Sound → the nearest English ones. A nasal vowel becomes vowel and "n". Rows of the English ones and what they stand for. */
const nearest: Readonly<Record<string, string>> = Object.fromEntries(
  `
    n \u0303ɳ; ɡ gɣɟ; u yʉ; ʊ ʏɯ; ɜ øœɞ; ə ɵɘ; ʌ ɤ; ɪ ɨ; ʃ ɕʂç; ʒ ʑʐ; h xχħ; v βʋ; f ɸ; ɹ rʀʁɻ
    ɾ ɽ; nj ɲ; ŋ ɴ; m ɱ; lj ʎ; l ɭɫɬ; w ɥɰ; k cq; t ʈ; d ɖ; ʔ ʕ; j ʝʲ; ts ʦ; dz ʣ; tʃ ʨ; dʒ ʥ
  `
    .split(/[;\n]/)
    .flatMap((row) => {
      const [near = "", sounds = ""] = row.trim().split(" ")
      return [...sounds].map((sound) => [sound, near])
    }),
)

export const inInventory = (ipa: string, symbols: Symbols, training: Training): string => {
  const known = (symbol: string): boolean =>
    symbols.has(symbol) && (training === "table" || english.has(symbol))
  let out = ""
  for (const symbol of ipa.normalize("NFC")) {
    if (known(symbol)) out += symbol
    else if (nearest[symbol] !== undefined) out += nearest[symbol]
    // "ä", "õ": a letter with a diacritic is decomposed, and each part is looked up alone.
    else for (const part of symbol.normalize("NFD")) out += known(part) ? part : (nearest[part] ?? "")
  }
  return out
}
