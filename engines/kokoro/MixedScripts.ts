// A clause in a script without an alphabet, with English words in it → symbols. The published front ends leave Latin letters as they are,
// which are symbols, too; English is read by its own front end where that is installed.
import type { EnglishPhonemes } from "./Espeak.ts"
import { rewriteEnglish } from "./KokoroPhonemes.ts"

const parts =
  /[\p{Script=Latin}\p{Script=Greek}][\p{Script=Latin}\p{Script=Greek}\p{M}'’ -]*|[^\p{Script=Latin}\p{Script=Greek}]+/gu

/**
 * @param own symbols of a part without Latin and Greek letters, words separated by spaces
 * @param english undefined if its package is not installed
 */
export const mixedSymbols = async (
  clause: string,
  own: (part: string) => string,
  english: EnglishPhonemes | undefined,
): Promise<string> => {
  const symbols: Array<string> = []
  for (const [part] of clause.matchAll(parts)) {
    if (!/[\p{Script=Latin}\p{Script=Greek}]/u.test(part)) symbols.push(own(part))
    else if (english === undefined) symbols.push(part.toLowerCase().replaceAll("g", "ɡ"))
    else symbols.push(rewriteEnglish(await english(part.trim(), "en-us"), false))
  }
  return symbols.join(" ").replace(/\s+/g, " ").trim()
}
