// Sounds of other languages → symbols that a model knows: the nearest English sound if it was trained on English
// only, the plain letter if its table merely lacks a variant. Pure.
import type { Symbols } from "../shared/speech/Symbols.ts"

/** "table": every symbol of the table was trained. "english": only those of English were. */
export type Training = "table" | "english"

/** Every symbol that the English front end produces, marks included (measured on 2,311 words in both accents). */
const english = new Set(' ˈˌːɪtnsɹldkəiɛpmzʊɚæaefobɑʃɔʌwvᵻuɡŋʒɾhɜjθɐðʔɒ;:,.!?—…"()“”')

/** Sound → the nearest English ones. A nasal vowel becomes vowel and "n". */
const nearest: Readonly<Record<string, string>> = {
  "\u0303": "n",
  g: "ɡ",
  y: "u",
  ʏ: "ʊ",
  ø: "ɜ",
  œ: "ɜ",
  ɵ: "ə",
  ɘ: "ə",
  ɞ: "ɜ",
  ɤ: "ʌ",
  ɯ: "ʊ",
  ʉ: "u",
  ɨ: "ɪ",
  ɕ: "ʃ",
  ʂ: "ʃ",
  ç: "ʃ",
  ʑ: "ʒ",
  ʐ: "ʒ",
  x: "h",
  χ: "h",
  ħ: "h",
  ɣ: "ɡ",
  β: "v",
  ɸ: "f",
  ʋ: "v",
  r: "ɹ",
  ʀ: "ɹ",
  ʁ: "ɹ",
  ɻ: "ɹ",
  ɽ: "ɾ",
  ɲ: "nj",
  ɳ: "n",
  ɴ: "ŋ",
  ɱ: "m",
  ʎ: "lj",
  ɭ: "l",
  ɫ: "l",
  ɬ: "l",
  ɥ: "w",
  ɰ: "w",
  c: "k",
  ɟ: "ɡ",
  q: "k",
  ʈ: "t",
  ɖ: "d",
  ʕ: "ʔ",
  ʝ: "j",
  ʲ: "j",
  ʦ: "ts",
  ʣ: "dz",
  ʨ: "tʃ",
  ʥ: "dʒ",
}

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
