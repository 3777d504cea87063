// A request's text as input of the multilingual Chatterbox: pieces of one sentence each, lower case, tagged with the
// language. No phonemes: the model was trained on letters. Pure.
import { cleanText } from "../shared/text/CleanText.ts"
import { sentences } from "../shared/text/Sentences.ts"

/** The ten languages of cloned speech (protocol 8.7); the published model knows more. */
export const languageCodes = ["en", "fr", "de", "es", "it", "pt", "pl", "ja", "ar", "zh"]

/** Marks that the model's published front end replaces. */
const marks: ReadonlyArray<readonly [RegExp, string]> = [
  [/\.\.\.|…/g, ", "],
  [/[:;]/g, ","],
  [/ - /g, ", "],
  [/[—–]/g, "-"],
  [/[“”]/g, '"'],
  [/[‘’]/g, "'"],
  [/ ,/g, ","],
  [/\s+/g, " "],
]

const endedPattern = /[.!?,\-、，。？！]$/u
const soundPattern = /[\p{L}\p{N}]/u

/** Least length of the first piece, which ends at its first clause mark after it: the sooner it ends, the sooner audio starts. */
const firstMinCharacters = 12
const clause = /[,;:—]\s/g

const firstCut = (sentence: string): number => {
  for (const mark of sentence.matchAll(clause)) {
    if (mark.index + 1 >= firstMinCharacters) return mark.index + 1
  }
  return sentence.length
}

/** Sentences of at most 400 characters, the first one cut short. Pieces without a letter or a digit are dropped. */
export function* chatterboxPieces(text: string): Generator<string> {
  let first = true
  for (const sentence of sentences(cleanText(text))) {
    const cut = first ? firstCut(sentence) : sentence.length
    for (const part of [sentence.slice(0, cut), sentence.slice(cut)]) {
      if (!soundPattern.test(part)) continue
      first = false
      yield part.trim()
    }
  }
}

/** A piece as the tokenizer expects it: `[de]guten[SPACE]tag.` `glyphs` replaces Chinese characters. */
export const taggedText = (
  piece: string,
  language: string,
  glyphs: (text: string) => string = (text) => text,
): string => {
  const plain = marks.reduce((text, [mark, instead]) => text.replace(mark, instead), piece).trim()
  const ended = endedPattern.test(plain) ? plain : `${plain}.`
  return `[${language}]${glyphs(ended.toLowerCase().normalize("NFKD"))}`.replaceAll(" ", "[SPACE]")
}
