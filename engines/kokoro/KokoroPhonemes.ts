// Kokoro's own spelling of IPA: the published rewriting of eSpeak's output, and text → phoneme fragments.
// A fragment is one clause or one run of marks, in order.
import type { Fragment } from "../shared/speech/WordSymbols.ts"
import { marks } from "../shared/text/EnglishText.ts"

/** Rules of the published English front end. `british` keeps the "t" of "ninety". */
export const rewriteEnglish = (ipa: string, british: boolean): string => {
  const shared = ipa
    .replace(/r/g, "ɹ")
    .replace(/x/g, "k")
    .replace(/ʲ/g, "j")
    .replace(/ɬ/g, "l")
    .replace(/g/g, "ɡ")
    .replace(/(?<=[^\sˈˌ])(?=hˈʌndɹɪd)/g, " ")
    .replace(/ z(?= |$)/g, "z")
  return british ? shared : shared.replace(/(?<=nˈaɪn)ti(?!ː)/g, "di")
}

// A mark between two digits ("3,5" if eSpeak reads the digits) belongs to the number.
const wordPattern = String.raw`(?:[^${marks}\s]|(?<=\d)[.,:](?=\d))+`
const fragmentPattern = new RegExp(
  String.raw`${wordPattern}(?:\s+${wordPattern})*|\s*[${marks}]+(?:\s*[${marks}]+)*\s*`,
  "gu",
)

/**
 * Fragments of one sentence in spoken form, lazily: marks unchanged, words through `toPhonemes`. A sentence ends with
 * white space, which separates it from the next one.
 */
export async function* phonemeFragments(
  sentence: string,
  toPhonemes: (clause: string) => Promise<string>,
): AsyncGenerator<Fragment> {
  for (const [fragment] of sentence.matchAll(fragmentPattern)) {
    const inner = fragment.trim()
    if (inner === "") continue
    // eSpeak would read out the name of a single hyphen or apostrophe, so both are skipped.
    if (marks.includes(inner[0]!)) yield { phonemes: fragment.replace(/\s+/g, " "), words: "" }
    else if (/[\p{L}\p{N}]/u.test(inner)) yield { phonemes: (await toPhonemes(inner)).trim(), words: inner }
  }
  yield { phonemes: " ", words: "" }
}
