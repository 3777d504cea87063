// The languages with a table of spoken forms.
import { chinese } from "./Chinese.ts"
import { french } from "./French.ts"
import { hindi } from "./Hindi.ts"
import { italian } from "./Italian.ts"
import { japanese } from "./Japanese.ts"
import { portuguese } from "./Portuguese.ts"
import { spanish } from "./Spanish.ts"
import { plainReader, readerOf, type TextReader } from "./SpokenText.ts"

const readers: Readonly<Record<string, TextReader>> = {
  es: readerOf(spanish),
  fr: readerOf(french),
  hi: readerOf(hindi),
  it: readerOf(italian),
  ja: readerOf(japanese),
  pt: readerOf(portuguese),
  zh: readerOf(chinese),
}

/** @param language ISO-639-1; eSpeak reads the signs of a language that has no table as it can */
export const textReader = (language: string): TextReader => readers[language] ?? plainReader
