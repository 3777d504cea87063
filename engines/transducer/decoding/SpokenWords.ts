// Tokens with times to text, words and segments. The text of the first tokens is always the beginning of the text of more tokens, so the
// captions of live audio only grow. Pure.

import { longestCue } from "#domain/audio/Transcript.ts"
import { fallbackByte, isFallbackByte } from "../../shared/text/TokenBytes.ts"
import { withoutReplacement } from "../../shared/text/Utf8Holdback.ts"
import type { TimedToken } from "./Greedy.ts"

export interface SpokenWord {
  /** With the space before it, if there is one. */
  text: string
  /** Frames: the first one, and the one behind the last. */
  start: number
  end: number
  readonly tokens: Array<TimedToken>
}

/** A tag of the spoken language among the tokens, such as `<en-US>`. */
const languageTag = /^<([a-z]{2,3})(?:-[A-Z][A-Za-z]+)?>$/
/** Whether a piece is a mark of the model, and no text. */
export const isControl = (piece: string): boolean => /^<[^<>\s]+>$/.test(piece) && !isFallbackByte(piece)

/** Marks that no space comes before. */
const attached = /^[.,!?;:…%)\]}»”’。，！？；：、）」』]/u
/** Characters of scripts that put no space between words: each begins a word of its own. */
const unspaced =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u
const onlyMarks = /^[\p{P}\s]*$/u

interface Spoken {
  readonly words: ReadonlyArray<SpokenWord>
  /** ISO-639-1 code of the first tag of a language among the tokens. */
  readonly language: string | undefined
}

/** `pieces`: the text of each token. */
export const spokenWords = (tokens: ReadonlyArray<TimedToken>, pieces: ReadonlyArray<string>): Spoken => {
  const words: Array<SpokenWord> = []
  let language: string | undefined
  let space = false
  /** Bytes of a character that is spelled by several tokens. */
  let bytes: Array<number> = []
  const decoder = new TextDecoder()
  for (const timed of tokens) {
    const piece = pieces[timed.token] ?? ""
    if (isControl(piece)) {
      language ??= languageTag.exec(piece)?.[1]
      continue
    }
    let text = piece.replaceAll("▁", " ")
    if (isFallbackByte(piece)) {
      bytes.push(fallbackByte(piece))
      text = characterOf(bytes, decoder)
      if (text === "" && bytes.length < 4) {
        // The token belongs to the character that the next ones complete.
        continue
      }
      bytes = []
    } else bytes = []
    text = withoutReplacement(text)
    if (text.startsWith(" ")) {
      space = true
      text = text.trimStart()
    }
    if (text === "") continue
    const joins = attached.test(text)
    const last = words.at(-1)
    const end = timed.frame + (timed.frames ?? 1)
    if (last !== undefined && (joins || (!space && !unspaced.test(text)))) {
      last.text += text
      last.tokens.push(timed)
      // A mark is not spoken.
      if (!onlyMarks.test(text)) last.end = Math.max(last.end, end)
    } else {
      const start = timed.frame
      words.push({ text: space ? ` ${text}` : text, start, end: Math.max(end, start + 1), tokens: [timed] })
    }
    space = false
  }
  return { words, language }
}

/** The character that these bytes spell; empty if it is not complete. */
const characterOf = (bytes: ReadonlyArray<number>, decoder: InstanceType<typeof TextDecoder>): string => {
  const text = decoder.decode(Uint8Array.from(bytes))
  return text.includes("\ufffd") ? "" : text
}

/** Pause between two words that begins a new segment, seconds. A guess. */
const pauseSeconds = 0.8
const endsSentence = /[.?!。？！]["”’»)]*$/u

/** Words in runs, each a segment: cut behind the end of a sentence, at a pause, or where a caption would be too long. */
export const segmentsOf = (
  words: ReadonlyArray<SpokenWord>,
  frameSeconds: number,
): ReadonlyArray<ReadonlyArray<SpokenWord>> => {
  const segments: Array<Array<SpokenWord>> = []
  let characters = 0
  for (const word of words) {
    const segment = segments.at(-1)
    const last = segment?.at(-1)
    const begins =
      segment === undefined ||
      last === undefined ||
      endsSentence.test(last.text) ||
      (word.start - last.end) * frameSeconds >= pauseSeconds ||
      (word.end - segment[0]!.start) * frameSeconds > longestCue.seconds ||
      characters + word.text.length > longestCue.characters
    if (begins) {
      segments.push([word])
      characters = word.text.length
    } else {
      segment.push(word)
      characters += word.text.length
    }
  }
  return segments
}
