// A request's text as the multilingual Chatterbox reads it: pieces of one sentence each, lower case, tagged with the
// language. Pure; called by the adapter. There are no phonemes in between: the model learned letters.
import { cleanText } from "../shared/text/CleanText.ts"
import { sentences } from "../shared/text/Sentences.ts"

/** The specification's ten; the published model knows more. */
export const LANGUAGES = ["en", "fr", "de", "es", "it", "pt", "pl", "ja", "ar", "zh"]

/** Marks that the model's own text clean-up replaces, as its published front end does. */
const MARKS: ReadonlyArray<readonly [RegExp, string]> = [
  [/\.\.\.|…/g, ", "],
  [/[:;]/g, ","],
  [/ - /g, ", "],
  [/[—–]/g, "-"],
  [/[“”]/g, '"'],
  [/[‘’]/g, "'"],
  [/ ,/g, ","],
  [/\s+/g, " "],
]

const ENDED = /[.!?,\-、，。？！]$/u
const HAS_SOUND = /[\p{L}\p{N}]/u

/** The first piece ends at its first clause mark, if that is not too soon: the sooner it ends, the sooner there is sound. */
const FIRST_MIN_CHARACTERS = 12
const CLAUSE = /[,;:—]\s/g

const firstCut = (sentence: string): number => {
  for (const mark of sentence.matchAll(CLAUSE)) {
    if (mark.index + 1 >= FIRST_MIN_CHARACTERS) return mark.index + 1
  }
  return sentence.length
}

/** Sentences of at most 400 characters, the first of them cut short; nothing without a letter or a digit. */
export function* chatterboxPieces(text: string): Generator<string> {
  let first = true
  for (const sentence of sentences(cleanText(text))) {
    const cut = first ? firstCut(sentence) : sentence.length
    for (const part of [sentence.slice(0, cut), sentence.slice(cut)]) {
      if (!HAS_SOUND.test(part)) continue
      first = false
      yield part.trim()
    }
  }
}

/** A piece as the tokenizer takes it: `[de]guten[SPACE]tag.` `glyphs` spells what has no letters (Chinese). */
export const taggedText = (
  piece: string,
  language: string,
  glyphs: (text: string) => string = (text) => text,
): string => {
  const plain = MARKS.reduce((text, [mark, instead]) => text.replace(mark, instead), piece).trim()
  const ended = ENDED.test(plain) ? plain : `${plain}.`
  return `[${language}]${glyphs(ended.toLowerCase().normalize("NFKD"))}`.replaceAll(" ", "[SPACE]")
}
