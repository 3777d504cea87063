// Sounds of any language → symbols of a model's table: the nearest sound where the table lacks one, the plain letter where it lacks a
// variant. Pure.
import type { Symbols } from "../shared/speech/Symbols.ts"

/** Sound → the nearest ones. A nasal vowel becomes vowel and "n". Rows of what stands in, and what for. */
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

export const inInventory = (ipa: string, symbols: Symbols): string => {
  let out = ""
  for (const symbol of ipa.normalize("NFC")) {
    if (symbols.has(symbol)) out += symbol
    else if (nearest[symbol] !== undefined) out += nearest[symbol]
    // "ä", "õ": a letter with a diacritic is decomposed, and each part is looked up alone.
    else for (const part of symbol.normalize("NFD")) out += symbols.has(part) ? part : (nearest[part] ?? "")
  }
  return out
}
