// Which words of a spoken answer had been heard at a position of its audio. The text was spoken in pieces; inside a piece each
// word is placed by its share of the characters, so a position is exact to about a word. Pure.

interface Piece {
  readonly text: string
  /** Samples of the pieces before. */
  readonly start: number
  samples: number
}

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

export class SpokenText {
  /** Where it begins in the audio of the whole conversation, samples. */
  readonly startsAt: number
  private readonly pieces: Array<Piece> = []

  constructor(startsAt: number) {
    this.startsAt = startsAt
  }

  /** Samples of all pieces so far. */
  get samples(): number {
    const last = this.pieces.at(-1)
    return last === undefined ? 0 : last.start + last.samples
  }

  get text(): string {
    return this.pieces.map(({ text }) => text).join("")
  }

  /** The next piece begins. Its audio follows. */
  begin(text: string): void {
    this.pieces.push({ text, start: this.samples, samples: 0 })
  }

  /** Audio of the newest piece. */
  add(samples: number): void {
    const last = this.pieces.at(-1)
    if (last !== undefined) last.samples += samples
  }

  /** The words heard in the first `samples`. `isWhole`: all of the newest piece's audio has been added. */
  heard(samples: number, isWhole = true): string {
    let heard = ""
    for (const [index, piece] of this.pieces.entries()) {
      const inPiece = samples - piece.start
      const isKnown = isWhole || index < this.pieces.length - 1
      if (inPiece >= piece.samples && isKnown) heard += piece.text
      else if (inPiece > 0 && piece.samples > 0) return heard + wordsUpTo(piece.text, inPiece / piece.samples)
      else return heard
    }
    return heard
  }
}
