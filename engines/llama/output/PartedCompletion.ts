// The state of one reply whose text has parts: thinking, calls of tools, and the answer. Like Completion, which does the same
// for plain text. The order of its stages: characters, thinking, calls, stop sequences. Stop sequences apply to the answer only.

import type { TextPart } from "../../protocol/Text.ts"
import { Utf8Holdback } from "../../shared/text/Utf8Holdback.ts"
import type { CompletionTerms } from "./Completion.ts"
import { StopMatcher } from "./StopMatcher.ts"
import { ThoughtFilter } from "./ThoughtFilter.ts"
import type { Piece } from "./Vocabulary.ts"

/** A piece of a reply. Without `part` it is the answer's own text. */
export interface TextPiece {
  readonly text: string
  readonly part?: TextPart
}

/** Finds calls of tools in the text of a reply as it streams. */
export interface PieceParser {
  readonly push: (text: string) => ReadonlyArray<TextPiece>
  /** `cut`: the reply ended by its length. */
  readonly end: (cut?: boolean) => ReadonlyArray<TextPiece>
}

interface PartedTerms extends CompletionTerms {
  /** True: thinking is a part of the reply. False: it is dropped. */
  readonly showsThinking: boolean
  readonly parser: PieceParser | undefined
}

interface PartedProgress {
  /** Final pieces, none of them empty except those that begin a call. */
  readonly pieces: ReadonlyArray<TextPiece>
  readonly finish: "stop" | "length" | "tool_calls" | undefined
}

const reasoning: TextPart = { kind: "reasoning" }

export class PartedCompletion {
  readonly #utf8 = new Utf8Holdback()
  readonly #stops: StopMatcher
  readonly #thought: ThoughtFilter | undefined
  readonly #parser: PieceParser | undefined
  readonly #maxTokens: number
  #tokens = 0
  #reasoningTokens = 0
  #calls = false

  constructor(terms: PartedTerms) {
    this.#stops = new StopMatcher(terms.stop)
    this.#thought = terms.thought && new ThoughtFilter(terms.thought, terms.showsThinking)
    this.#parser = terms.parser
    this.#maxTokens = terms.maxTokens
  }

  /** Generated tokens without the token that ended the reply. */
  get tokens(): number {
    return this.#tokens
  }

  /** Those of thinking, its markers included. */
  get reasoningTokens(): number {
    return this.#reasoningTokens
  }

  /** True once a call has begun. */
  get hasCalls(): boolean {
    return this.#calls
  }

  /** True while the reply is inside a thinking block. */
  get thinking(): boolean {
    return this.#thought?.inside ?? false
  }

  /** `last`: nothing may follow this token. */
  accept(piece: Piece, last = false): PartedProgress {
    if (piece.end) return this.#finish([], "stop")
    const thought = this.thinking
    this.#tokens++
    const whole = this.#utf8.empty && piece.text !== undefined
    const pieces: Array<TextPiece> = []
    const matched = this.#read(whole ? piece.text : this.#utf8.push(piece.bytes), pieces)
    if (thought || this.thinking) this.#reasoningTokens++
    if (matched) return { pieces, finish: this.#stopped() }
    if (last) return this.#finish(pieces, "stop")
    return this.#tokens >= this.#maxTokens ? this.#finish(pieces, "length") : { pieces, finish: undefined }
  }

  /** Returns true if a stop sequence ended the reply. */
  #read(text: string, pieces: Array<TextPiece>): boolean {
    const answer = this.#thought === undefined ? text : this.#thought.push(text)
    this.#addReasoning(pieces)
    return this.#addText(answer, pieces)
  }

  #addText(text: string, pieces: Array<TextPiece>): boolean {
    if (text === "") return false
    return this.#parser === undefined
      ? this.#addAnswer(text, pieces)
      : this.#addParsed(this.#parser.push(text), pieces)
  }

  #addReasoning(pieces: Array<TextPiece>): void {
    const text = this.#thought?.takeReasoning() ?? ""
    if (text !== "") pieces.push({ text, part: reasoning })
  }

  #addParsed(parsed: ReadonlyArray<TextPiece>, pieces: Array<TextPiece>): boolean {
    for (const piece of parsed) {
      if (piece.part === undefined) {
        if (this.#addAnswer(piece.text, pieces)) return true
      } else {
        // A call interrupts the text, so a stop sequence that has begun cannot complete.
        this.#add(this.#stops.flush(), pieces)
        this.#calls ||= piece.part.kind === "call"
        if (piece.text !== "" || piece.part.kind === "call") pieces.push(piece)
      }
    }
    return false
  }

  #addAnswer(answer: string, pieces: Array<TextPiece>): boolean {
    const { matched, text } = this.#stops.push(answer)
    this.#add(text, pieces)
    return matched
  }

  #add(text: string, pieces: Array<TextPiece>): void {
    if (text !== "") pieces.push({ text })
  }

  /** Resolves what was held back, because nothing follows; see Completion. */
  #finish(pieces: Array<TextPiece>, reason: "stop" | "length"): PartedProgress {
    this.#utf8.end()
    const answer = this.#thought?.flush() ?? ""
    this.#addReasoning(pieces)
    const matched =
      this.#addText(answer, pieces) ||
      (this.#parser !== undefined && this.#addParsed(this.#parser.end(reason === "length"), pieces))
    if (matched) return { pieces, finish: this.#stopped() }
    this.#add(this.#stops.flush(), pieces)
    return { pieces, finish: reason === "length" ? reason : this.#stopped() }
  }

  #stopped(): "stop" | "tool_calls" {
    return this.#calls ? "tool_calls" : "stop"
  }
}
