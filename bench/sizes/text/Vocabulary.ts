// The vocabulary of the generated text models: byte-level BPE in the layout of Qwen's, 151,936 tokens. Built from the
// repository's list of English words.
import { readFileSync } from "node:fs"
import { RandomWords } from "../RandomWords.ts"
import { learnedMerges, type Merge, madeUpMerges } from "./Merges.ts"

export interface TextVocabulary {
  readonly tokens: ReadonlyArray<string>
  /** Kind of each token, as GGUF numbers them. */
  readonly kinds: ReadonlyArray<number>
  /** Two tokens with a space between them, in order of priority. */
  readonly merges: ReadonlyArray<string>
  /** Ids that a reply must not contain: control tokens, unused ones, and bytes that are not text by themselves. */
  readonly neverDrawn: ReadonlySet<number>
  readonly endOfText: number
  readonly endOfMessage: number
}

const kind = { normal: 1, control: 3, unused: 5 } as const

const vocabularySize = 151_936

/** Ids as in Qwen's vocabulary: the control tokens follow 151,643 ordinary ones. */
const firstControl = 151_643
const controls = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

/** Spelling of each byte (GPT-2's table): a printable byte is its own character, the others are U+0100 and following. */
const byteSpellings: ReadonlyArray<string> = (() => {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
  let next = 0x100
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++))
})()

/** The bytes of an ordinary token. */
export const bytesOf = (token: string): Uint8Array =>
  Uint8Array.from([...token], (character) => byteSpellings.indexOf(character))

/** A space as byte-level vocabularies spell it. */
const space = "Ġ"

const words = new URL("../../../models/train/text/vocabulary.txt", import.meta.url)

export const readWordList = (): string => readFileSync(words, "utf8")

/** Each of these words, with a space before it, is one token. */
export const wordsIn = (list: string): ReadonlyArray<string> => {
  const lines = list.split("\n").filter((line) => !/^[#[]/.test(line))
  return [...new Set(lines.join(" ").split(/[^A-Za-z]+/))].filter((word) => word !== "")
}

/** Bytes that are text by themselves: printable ASCII, and the line feed. */
const isTextByte = (byte: number): boolean => (byte >= 0x20 && byte < 0x7f) || byte === 0x0a

const spelled = ({ left, right }: Merge): string => `${left} ${right}`

export const textVocabulary = (wordList: string, seed: number): TextVocabulary => {
  const learned = learnedMerges(wordsIn(wordList).map((word) => space + word))
  const missing = firstControl - byteSpellings.length - learned.length
  const merges = [...learned, ...madeUpMerges(learned, missing, new RandomWords(seed))]
  const unused = vocabularySize - firstControl - controls.length
  const tokens = [
    ...byteSpellings,
    ...merges.map(({ left, right }) => left + right),
    ...controls,
    ...Array.from({ length: unused }, (_, nth) => `[PAD${firstControl + controls.length + nth}]`),
  ]
  const kinds = tokens.map((_, id) => {
    if (id < firstControl) return kind.normal
    return id < firstControl + controls.length ? kind.control : kind.unused
  })
  const neverDrawn = [...tokens.keys()].filter((id) => (id < 256 ? !isTextByte(id) : id >= firstControl))
  return {
    tokens,
    kinds,
    merges: merges.map(spelled),
    neverDrawn: new Set(neverDrawn),
    endOfText: firstControl,
    endOfMessage: firstControl + 2,
  }
}

/** A small vocabulary: bytes, two line breaks, some words, and these control tokens, the first two of which end texts and messages. */
export const smallVocabulary = (
  words: ReadonlyArray<string>,
  controlTokens: readonly [endOfText: string, endOfMessage: string, ...ReadonlyArray<string>],
): TextVocabulary => {
  const breaks = { left: byteSpellings[10]!, right: byteSpellings[10]! }
  const merges = [breaks, ...learnedMerges(words.map((word) => space + word))]
  const ordinary = [...byteSpellings, ...new Set(merges.map(({ left, right }) => left + right))]
  const tokens = [...ordinary, ...controlTokens]
  const neverDrawn = [...tokens.keys()].filter((id) => (id < 256 ? !isTextByte(id) : id >= ordinary.length))
  return {
    tokens,
    kinds: tokens.map((_, id) => (id < ordinary.length ? kind.normal : kind.control)),
    merges: merges.map(spelled),
    neverDrawn: new Set(neverDrawn),
    endOfText: ordinary.length,
    endOfMessage: ordinary.length + 1,
  }
}
