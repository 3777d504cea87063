// The base of all readers: the text of the answer up to the first call, then the steps of the family's own syntax. The grammar
// holds calls to their syntax; text that does not have it all the same ends the reading, and nothing of it is given.
import type { CallParser, ParsedPiece } from "./CallParser.ts"
import { type Beginning, ContentScanner } from "./ContentScanner.ts"

const notName = /[^A-Za-z0-9_-]/

/** How many of the last characters of a text could be the beginning of another. */
export const beginningAtEnd = (text: string, of: string): number => {
  let length = Math.min(of.length - 1, text.length)
  while (length > 0 && !text.endsWith(of.slice(0, length))) length--
  return length
}

export abstract class OpenedReader<State extends string> implements CallParser {
  readonly #content: ContentScanner
  #opened = false
  /** Undefined: the reading has ended. */
  #state: State | undefined
  /** What follows the opener and was not read yet. */
  protected rest = ""
  /** Number of the call that is being read; -1 before the first. */
  protected call = -1

  /** `first`: the state behind the opener. */
  constructor(beginnings: ReadonlyArray<Beginning>, atStart: boolean, first: State) {
    this.#content = new ContentScanner(beginnings, atStart)
    this.#state = first
  }

  /** One step forward; false if more text is needed. */
  protected abstract step(state: State, pieces: Array<ParsedPiece>): boolean

  push(text: string): ReadonlyArray<ParsedPiece> {
    const pieces: Array<ParsedPiece> = []
    if (this.#opened) this.rest += text
    else {
      const { after, content } = this.#content.push(text)
      if (content !== "") pieces.push({ text: content })
      if (after === undefined) return pieces
      this.#opened = true
      this.rest = after.text
    }
    while (this.#state !== undefined && this.step(this.#state, pieces));
    if (this.#state === undefined) this.rest = ""
    return joined(pieces)
  }

  end(cut = false): ReadonlyArray<ParsedPiece> {
    const held = this.#opened ? "" : this.#content.end(cut)
    return held === "" ? [] : [{ text: held }]
  }

  /** Goes on with this state, or ends the reading. */
  protected to(state: State | undefined): true {
    this.#state = state
    return true
  }

  /** Takes a text away if it is next. Anything else ends the reading. */
  protected pass(expected: string, then: State | undefined): boolean {
    if (this.takes(expected)) return this.to(then)
    if (!expected.startsWith(this.rest)) this.#state = undefined
    return false
  }

  /** True if the text was next; it is taken away. */
  protected takes(expected: string): boolean {
    if (!this.rest.startsWith(expected)) return false
    this.rest = this.rest.slice(expected.length)
    return true
  }

  /** Takes the name that ends before the first character that no name has, and begins a call. */
  protected begins(pieces: Array<ParsedPiece>): string | undefined {
    const at = this.rest.search(notName)
    if (at < 0) return undefined
    const name = this.rest.slice(0, at)
    this.rest = this.rest.slice(at)
    this.call++
    pieces.push({ text: "", part: { kind: "call", call: this.call, name } })
    return name
  }

  /** Gives JSON text of the arguments. */
  protected give(pieces: Array<ParsedPiece>, json: string): void {
    if (json !== "") pieces.push({ text: json, part: { kind: "arguments", call: this.call } })
  }
}

/** Neighbouring pieces of one call's arguments as one piece. */
const joined = (pieces: ReadonlyArray<ParsedPiece>): ReadonlyArray<ParsedPiece> => {
  const apart: Array<ParsedPiece> = []
  for (const piece of pieces) {
    const last = apart.at(-1)
    if (last?.part?.kind === "arguments" && piece.part?.kind === "arguments")
      apart.splice(-1, 1, { text: last.text + piece.text, part: piece.part })
    else apart.push(piece)
  }
  return apart
}
