// Which words of a spoken answer had been heard at a position of its audio. The text was spoken in pieces. Where the voice tells when
// each word is heard, that counts; elsewhere a word of a piece is placed by its share of the characters, which is exact to about a
// word. Pure.
import { type SpokenWord, WordTimes } from "../audio/TimedWords.ts"

interface Piece {
  readonly text: string
  /** Samples of the pieces before. */
  readonly start: number
  samples: number
  /** In samples of the piece. */
  readonly times: WordTimes
  /** Characters that were told as captions. */
  told: number
}

/** Words whose place in the audio is known. */
export interface Caption {
  readonly text: string
  /** Where they begin in the answer's audio, samples. */
  readonly start: number
}

/** Memory of a character that is spoken: of the times of its word. A guess from V8's sizes: 200 bytes a word. */
const characterBytes = 32

/** Words with the white space before them. */
const words = /\s*\S+/g

/** The words of a piece of which at least half lies before the share (0 to 1) of its characters. */
const wordsUpTo = (text: string, share: number): string => {
  const reach = text.length * share
  let end = 0
  for (const { 0: word, index } of text.matchAll(words)) {
    if (index + word.length / 2 > reach) break
    end = index + word.length
  }
  return text.slice(0, end)
}

/** The words of a piece of which at least half lies in its first `samples`. */
const heardOf = ({ samples: all, text, times: { found } }: Piece, samples: number): string => {
  if (found.length === 0) return wordsUpTo(text, samples / all)
  let end = 0
  for (const word of found) {
    if ((word.start + word.end) / 2 > samples) break
    end = word.to
  }
  return text.slice(0, end)
}

export class SpokenText {
  /** Where it begins in the audio of the whole conversation, samples. */
  readonly startsAt: number
  private readonly pieces: Array<Piece> = []
  /** The fewest samples of which a client has said that no more were played. */
  private end = Number.POSITIVE_INFINITY

  constructor(startsAt: number) {
    this.startsAt = startsAt
  }

  /** Samples of all pieces so far. */
  get samples(): number {
    const last = this.pieces.at(-1)
    return last === undefined ? 0 : last.start + last.samples
  }

  /** Memory of the pieces so far. */
  get bytes(): number {
    return this.pieces.reduce((sum, { text }) => sum + text.length * characterBytes, 0)
  }

  get text(): string {
    return this.pieces.map(({ text }) => text).join("")
  }

  /** The next piece begins. Its audio follows. */
  begin(text: string): void {
    this.pieces.push({ text, start: this.samples, samples: 0, times: new WordTimes(text), told: 0 })
  }

  /**
   * Audio of the newest piece, with the words of which the voice told that they begin with it; their samples count from the piece's
   * first. Returns what is known now; all of the piece at once if the voice tells nothing.
   */
  add(samples: number, words: ReadonlyArray<SpokenWord> = []): ReadonlyArray<Caption> {
    const last = this.pieces.at(-1)
    if (last === undefined) return []
    const isFirst = last.samples === 0
    last.samples += samples
    const known = last.times.found.length
    last.times.push(words)
    const { found } = last.times
    if (isFirst && found.length === 0) return this.rest()
    return found.slice(known).flatMap((word) => {
      const space = /\S/.exec(last.text.slice(word.to))?.index ?? last.text.length - word.to
      const to = word.to + space
      if (to <= last.told) return []
      const text = last.text.slice(last.told, to)
      last.told = to
      return [{ text, start: last.start + word.start }]
    })
  }

  /** What is left of the newest piece, which begins where its audio ends, or at its beginning if it has no words with times. */
  rest(): ReadonlyArray<Caption> {
    const last = this.pieces.at(-1)
    if (last === undefined || last.told >= last.text.length) return []
    const text = last.text.slice(last.told)
    const start = last.times.found.length === 0 ? last.start : this.samples
    last.told = last.text.length
    return [{ text, start }]
  }

  /**
   * The client has played no more than the first `samples`. Returns how many count as played: a later report that says more brings
   * nothing back.
   */
  cut(samples: number): number {
    this.end = Math.min(this.end, this.samples, samples)
    return this.end
  }

  /** The words heard in the first `samples`. `isWhole`: all of the newest piece's audio has been added. */
  heard(samples: number, isWhole = true): string {
    let heard = ""
    for (const [index, piece] of this.pieces.entries()) {
      const inPiece = samples - piece.start
      const isKnown = isWhole || index < this.pieces.length - 1
      if (inPiece >= piece.samples && isKnown) heard += piece.text
      else if (inPiece > 0 && piece.samples > 0) return heard + heardOf(piece, inPiece)
      else return heard
    }
    return heard
  }
}
