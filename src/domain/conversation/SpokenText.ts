// Which words of a spoken answer had been heard at a position of its audio. The text was spoken in pieces. Where the voice tells when
// each word is heard, that counts; elsewhere a word of a piece is placed by its share of the characters, which is exact to about a
// word. A record is never changed: what is added makes a new one.
import { type SpokenWord, WordTimes } from "../audio/TimedWords.ts"

interface Piece {
  readonly text: string
  /** Samples of the pieces before. */
  readonly start: number
  readonly samples: number
  /** Samples that were made of it, and will not be added. */
  readonly unsent: number
  /** In samples of the piece. */
  readonly times: WordTimes
  /** Characters that were told as captions. */
  readonly told: number
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
const heardOf = ({ samples: all, text, times: { found }, unsent }: Piece, samples: number): string => {
  if (found.length === 0) return wordsUpTo(text, samples / (all + unsent))
  let end = 0
  for (const word of found) {
    if ((word.start + word.end) / 2 > samples) break
    end = word.to
  }
  return text.slice(0, end)
}

/** The text with what was added, and the captions that are known by that. */
interface Added {
  readonly spoken: SpokenText
  readonly captions: ReadonlyArray<Caption>
}

export class SpokenText {
  /** Where it begins in the audio of the whole conversation, samples. */
  readonly startsAt: number
  /** So many of its samples count as played at most: a client has said so. */
  readonly end: number
  readonly #pieces: ReadonlyArray<Piece>
  /** Whether all audio of the newest piece was added, or will be. */
  readonly #isWhole: boolean

  constructor(
    startsAt: number,
    pieces: ReadonlyArray<Piece> = [],
    end = Number.POSITIVE_INFINITY,
    isWhole = true,
  ) {
    this.startsAt = startsAt
    this.#pieces = pieces
    this.end = end
    this.#isWhole = isWhole
  }

  /** Samples of all pieces so far. */
  get samples(): number {
    const last = this.#pieces.at(-1)
    return last === undefined ? 0 : last.start + last.samples
  }

  /** Memory of the pieces so far. */
  get bytes(): number {
    return this.#pieces.reduce((sum, { text }) => sum + text.length * characterBytes, 0)
  }

  get text(): string {
    return this.#pieces.map(({ text }) => text).join("")
  }

  /** The next piece begins. Its audio follows. */
  begin(text: string): SpokenText {
    const piece = { text, start: this.samples, samples: 0, unsent: 0, times: new WordTimes(text), told: 0 }
    return new SpokenText(this.startsAt, [...this.#pieces, piece], this.end)
  }

  /**
   * Audio of the newest piece, with the words of which the voice told that they begin with it; their samples count from the piece's
   * first. With it comes what is known now; all of the piece at once if the voice tells nothing.
   */
  add(samples: number, words: ReadonlyArray<SpokenWord> = []): Added {
    const last = this.#pieces.at(-1)
    if (last === undefined) return { spoken: this, captions: [] }
    const times = words.length === 0 ? last.times : last.times.with(words)
    const longer = { ...last, samples: last.samples + samples, times }
    if (last.samples === 0 && times.found.length === 0) return this.#withLast(longer).rest()
    let { told } = last
    const captions = times.found.slice(last.times.found.length).flatMap((word) => {
      const space = /\S/.exec(last.text.slice(word.to))?.index ?? last.text.length - word.to
      const to = word.to + space
      if (to <= told) return []
      const text = last.text.slice(told, to)
      told = to
      return [{ text, start: last.start + word.start }]
    })
    return { spoken: this.#withLast({ ...longer, told }), captions }
  }

  /** What is left of the newest piece, which begins where its audio ends, or at its beginning if it has no words with times. */
  rest(): Added {
    const last = this.#pieces.at(-1)
    if (last === undefined || last.told >= last.text.length) return { spoken: this, captions: [] }
    const text = last.text.slice(last.told)
    const start = last.times.found.length === 0 ? last.start : this.samples
    return { spoken: this.#withLast({ ...last, told: last.text.length }), captions: [{ text, start }] }
  }

  #withLast(piece: Piece): SpokenText {
    return new SpokenText(this.startsAt, [...this.#pieces.slice(0, -1), piece], this.end, this.#isWhole)
  }

  /** No more audio of the newest piece follows, though there is more of it: so many samples are known. */
  broken(unsent = 0): SpokenText {
    const last = this.#pieces.at(-1)
    const pieces = last === undefined ? [] : [...this.#pieces.slice(0, -1), { ...last, unsent }]
    return new SpokenText(this.startsAt, pieces, this.end, false)
  }

  /** The client has played no more than the first `samples`: a later report that says more brings nothing back. */
  cut(samples: number): SpokenText {
    const end = Math.min(this.end, this.samples, samples)
    return new SpokenText(this.startsAt, this.#pieces, end, this.#isWhole)
  }

  /** The words heard in the first `samples`. */
  heard(samples: number): string {
    let heard = ""
    for (const [index, piece] of this.#pieces.entries()) {
      const inPiece = samples - piece.start
      const isKnown = this.#isWhole || index < this.#pieces.length - 1
      if (inPiece >= piece.samples && isKnown) heard += piece.text
      else if (inPiece > 0 && piece.samples > 0) return heard + heardOf(piece, inPiece)
      else return heard
    }
    return heard
  }
}
