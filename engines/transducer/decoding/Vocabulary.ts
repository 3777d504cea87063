// The pieces of text of a transducer's tokens, from the files of the published exports: `vocab.txt` and `tokens.txt` (a piece and its id a
// line, or a piece alone), and `tokenizer.model` of SentencePiece. Pure.

export interface Vocabulary {
  /** Piece by id. `▁` stands for a space. */
  readonly pieces: ReadonlyArray<string>
  /** Id of the piece that means "nothing is said", if the file has one. */
  readonly blank: number | undefined
}

/** A vocabulary that cannot be read; `message` follows the file's name. */
export class VocabularyProblem extends Error {}

const blankPieces = ["<blk>", "<blank>", "<eps>"]

/** Far above the published ones, of which the largest has 13,088. */
const mostPieces = 1_000_000

const withBlank = (pieces: ReadonlyArray<string>): Vocabulary => {
  if (pieces.length < 2) throw new VocabularyProblem("has no pieces")
  const blank = pieces.findIndex((piece) => blankPieces.includes(piece))
  return { pieces, blank: blank === -1 ? undefined : blank }
}

/** A line is a piece and its id after the last space; a line with an id alone is a space. Without ids the line's number is the id. */
export const vocabularyOfText = (text: string): Vocabulary => {
  const lines = text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.replace(/\r$/, ""))
  if (lines.length > mostPieces) throw new VocabularyProblem(`has more than ${mostPieces} lines`)
  const numbered = lines.filter((line) => line !== "").every((line) => /(?:^|[ \t])\d+$/.test(line))
  if (!numbered) return withBlank(lines)
  const pieces: Array<string> = []
  for (const line of lines) {
    if (line === "") continue
    const at = Math.max(line.lastIndexOf(" "), line.lastIndexOf("\t"))
    const id = Number(line.slice(at + 1))
    const piece = at <= 0 ? "▁" : line.slice(0, at)
    if (id >= lines.length) throw new VocabularyProblem(`has the id ${id}, but ${lines.length} lines`)
    if (pieces[id] !== undefined) throw new VocabularyProblem(`has the id ${id} twice`)
    pieces[id] = piece
  }
  for (let id = 0; id < pieces.length; id++) {
    if (pieces[id] === undefined)
      throw new VocabularyProblem(`has no piece with the id ${id}: it is cut or mixed`)
  }
  return withBlank(pieces)
}

/** Kinds of pieces in SentencePiece's file that are no text. */
const control = 3

/** `ModelProto`: its field 1 is repeated, a message with the piece (1), its score (2) and its kind (3). */
export const vocabularyOfSentencePiece = (bytes: Uint8Array): Vocabulary => {
  const pieces: Array<string> = []
  const text = new TextDecoder()
  const cut = () => new VocabularyProblem("is cut short, or no SentencePiece model")
  const walk = (
    from: number,
    to: number,
    onField: (number: number, value: number, at: number, end: number) => void,
  ): void => {
    let at = from
    const varint = (): number => {
      let value = 0
      for (let shift = 1; ; shift *= 128) {
        const byte = bytes[at++]
        if (byte === undefined || shift > 2 ** 62) throw cut()
        value += (byte & 0x7f) * shift
        if (byte < 0x80) return value
      }
    }
    while (at < to) {
      const key = varint()
      const wire = key % 8
      const number = Math.floor(key / 8)
      const start = at
      if (wire === 0) onField(number, varint(), start, start)
      else if (wire === 1) at += 8
      else if (wire === 5) at += 4
      else if (wire === 2) {
        const length = varint()
        if (at + length > to) throw cut()
        onField(number, length, at, at + length)
        at += length
      } else throw cut()
    }
    if (at > to) throw cut()
  }
  walk(0, bytes.length, (number, _, at, end) => {
    if (number !== 1) return
    if (pieces.length === mostPieces) throw new VocabularyProblem(`has more than ${mostPieces} pieces`)
    let piece = ""
    let kind = 1
    walk(at, end, (inner, value, from, to) => {
      if (inner === 1) piece = text.decode(bytes.subarray(from, to))
      if (inner === 3) kind = value
    })
    // A control piece is written in angle brackets; one that is not must not become text either.
    pieces.push(kind === control && !piece.startsWith("<") ? `<${piece}>` : piece)
  })
  return withBlank(pieces)
}
