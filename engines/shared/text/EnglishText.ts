// One written English sentence → its spoken form for the phonemiser: letters, apostrophes, hyphens, spaces, and the
// marks of `marks`. Pure, linear in the length of the sentence.
import type { Accent } from "./Numbers.ts"
import { cardinal } from "./Numbers.ts"
import { sayNumbers } from "./SpokenNumbers.ts"
import { abbreviations, romanPattern, romanValue } from "./SpokenWords.ts"
import { addressParts } from "./spoken/Addresses.ts"
import { plainDigits } from "./spoken/Digits.ts"

/** The punctuation marks in the model's symbol table; they carry prosody. */
export const marks = ';:,.!?—…"()“”'

/** URLs and e-mail addresses: their dots and slashes are spoken. */
const addressPattern = /\b(?:https?:\/\/|www\.)[^\s<>"“”]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+/gi

const sayAddress = (address: string): string => {
  const { spoken, tail } = addressParts(address)
  return (
    spoken
      .replace(/\./g, " dot ")
      .replace(/@/g, " at ")
      .replace(/\//g, " slash ")
      .replace(/-/g, " dash ")
      .replace(/_/g, " underscore ")
      .replace(/[?&=#%+~:]/g, " ") + tail
  )
}

/** Signs between or before numbers; replaced before the digits are. */
const signsAtNumbers: ReadonlyArray<readonly [RegExp, string]> = [
  [/~(?=\s?\d)/g, "about "],
  [/(?<=\d\s?)[x×*](?=\s?\d)/g, " times "],
  [/(?<=\d\s?)÷(?=\s?\d)/g, " divided by "],
  [/(?<=\d\s)[-−](?=\s\d)/g, " minus "],
  [/(?<=\d)\^(?=\d)/g, " to the power of "],
  [/±/g, " plus or minus "],
]

const signs: ReadonlyArray<readonly [RegExp, string]> = [
  [/&/g, " and "],
  [/@/g, " at "],
  [/\+/g, " plus "],
  [/(?<![<>=!])==?(?!>)/g, " equals "],
  [/<=|≤/g, " less than or equal to "],
  [/>=|≥/g, " greater than or equal to "],
  [/<(?=\s)|(?<=\s)</g, " less than "],
  [/(?<=\s)>(?=\s)/g, " greater than "],
  [/≠/g, " is not equal to "],
  [/≈/g, " about "],
  [/√/g, " square root of "],
  [/∞/g, " infinity "],
  [/°/g, " degrees "],
  [/%/g, " percent "],
  [/§/g, " section "],
  [/#(?=\p{L})/gu, " hashtag "],
  [/\$/g, " dollars "],
  [/£/g, " pounds "],
  [/€/g, " euros "],
  [/\\/g, " backslash "],
  [/(?<=\p{L})\/(?=\p{L})/gu, " or "],
  [/[[{]/g, " ("],
  [/[\]}]/g, ") "],
  [/\s[-–−](?=\s)|\s*–\s*/g, " — "],
  [/[•·|]/g, ", "],
]

/** Dotted initials: "U.S.A." → "U S A". The last full stop stays if a capital or nothing follows. */
const initials = /\b((?:\p{L}\.){1,}\p{L})\.(?=\s\p{Lu}|$)|\b((?:\p{L}\.)+\p{L})\.?(?![\p{L}\d])/gu

/** Everything that the phonemiser cannot use. Scripts other than Latin and Greek are not spoken. */
const unspoken = /[^\p{Script=Latin}\p{Script=Greek}\p{M}'\s;:,.!?—…"()“”-]|(?<!\p{L})[-]|[-](?!\p{L})/gu

export const englishText = (sentence: string, accent: Accent): string => {
  let text = plainDigits(sentence).replace(addressPattern, sayAddress)
  for (const [pattern, word] of abbreviations) {
    text = text.replace(pattern, (match: string, offset: number, all: string) => {
      const last = match.endsWith(".") && offset + match.length === all.trimEnd().length
      return last ? `${word}.` : word
    })
  }
  text = text.replace(romanPattern, (_, word: string, roman: string) =>
    roman === "" ? `${word} ${roman}` : `${word} ${cardinal(String(romanValue(roman)), accent)}`,
  )
  for (const [pattern, word] of signsAtNumbers) text = text.replace(pattern, word)
  text = sayNumbers(text, accent)
  text = text.replace(initials, (_, last: string | undefined, inner: string | undefined) =>
    last === undefined ? inner!.replaceAll(".", " ") : `${last.replaceAll(".", " ")}.`,
  )
  text = text.replace(/(?<![\p{L}\d])(?!I\b)(\p{Lu})\.(?=\s\p{Lu})/gu, "$1")
  for (const [pattern, word] of signs) text = text.replace(pattern, word)
  return text
    .replace(unspoken, " ")
    .replace(/\s+/g, " ")
    .replace(/\s+(?=[;:,.!?…)”])/g, "")
    .replace(/([,;:—])(?:\s*[,;:—])+/g, "$1")
    .replace(/(?<=[,;:!?…])(?=[\p{L}“(])/gu, " ")
    .replace(/[,;:](?=[.!?])/g, "")
    .trim()
}
