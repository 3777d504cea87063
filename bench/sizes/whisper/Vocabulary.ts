// A vocabulary of published size: byte-level BPE whose words are made of syllables, and the control tokens of
// multilingual Whisper in their published order. Pure.
import type { WhisperShape } from "./Shapes.ts"

/** Number of text tokens; the control tokens have the ids after them. */
const textTokens = 50_257
const timestamps = 1_501

const languageCodes = (
  "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy " +
  "sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo " +
  "uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
).split(" ")

/** The characters by which GPT-2 spells the 256 bytes, in the order of their tokens. */
const byteCharacters = (): ReadonlyArray<string> => {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173)
  const bytes = Array.from({ length: 256 }, (_, byte) => byte)
  const shown = bytes.filter(printable).map((byte) => String.fromCodePoint(byte))
  const others = bytes.filter((byte) => !printable(byte)).map((_, i) => String.fromCodePoint(256 + i))
  return [...shown, ...others]
}

export interface Vocabulary {
  /** Spellings of the text tokens by id. */
  readonly words: ReadonlyArray<string>
  readonly merges: ReadonlyArray<string>
  /** Control tokens and timestamps; their ids follow those of the words. */
  readonly added: ReadonlyArray<{ readonly id: number; readonly content: string; readonly special: boolean }>
  readonly size: number
  readonly idOf: (content: string) => number
  readonly languages: ReadonlyArray<string>
}

const space = "Ġ"

export const vocabularyOf = (shape: WhisperShape): Vocabulary => {
  const words = [...byteCharacters()]
  const merges: Array<string> = []
  const join = (first: string, second: string): string => {
    if (words.length < textTokens) {
      words.push(first + second)
      merges.push(`${first} ${second}`)
    }
    return first + second
  }
  const pairs = (firsts: ReadonlyArray<string>, seconds: ReadonlyArray<string>): ReadonlyArray<string> =>
    firsts.flatMap((first) => seconds.map((second) => join(first, second)))
  const syllables = pairs([..."bcdfghjklmnpqrstvwxz"], [..."aeiou"])
  const beginnings = pairs([space], syllables)
  pairs(syllables, syllables)
  const short = pairs(beginnings, syllables)
  pairs(short, syllables)
  const languages = languageCodes.slice(0, shape.languages)
  const control = [
    "endoftext",
    "startoftranscript",
    ...languages,
    "translate",
    "transcribe",
    "startoflm",
    "startofprev",
    // The same token has two names in the published vocabularies.
    shape.languages === 99 ? "nocaptions" : "nospeech",
    "notimestamps",
  ].map((name) => ({ content: `<|${name}|>`, special: true }))
  const times = Array.from({ length: timestamps }, (_, step) => ({
    content: `<|${(step / 50).toFixed(2)}|>`,
    special: false,
  }))
  const added = [...control, ...times].map((token, i) => ({ ...token, id: words.length + i }))
  const ids = new Map(added.map(({ content, id }) => [content, id]))
  return {
    words,
    merges,
    added,
    size: words.length + added.length,
    languages,
    idOf: (content) => {
      const id = ids.get(content)
      if (id === undefined) throw new Error(`no token ${content}`)
      return id
    },
  }
}
