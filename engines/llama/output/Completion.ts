// The state of one reply: takes sampled tokens, gives final text, and decides when the reply ends.

import { Utf8Holdback } from "../../shared/text/Utf8Holdback.ts"
import { StopMatcher } from "./StopMatcher.ts"
import { ThoughtFilter, type ThoughtMarkers } from "./ThoughtFilter.ts"
import type { Piece } from "./Vocabulary.ts"

export interface CompletionTerms {
  readonly stop: ReadonlyArray<string>
  /** At most what the context has left; at least 1. */
  readonly maxTokens: number
  readonly thought: ThoughtMarkers | undefined
}

interface Progress {
  /** Final text; may be empty. */
  readonly text: string
  readonly finish: "stop" | "length" | undefined
}

export class Completion {
  readonly #utf8 = new Utf8Holdback()
  readonly #stops: StopMatcher
  readonly #thought: ThoughtFilter | undefined
  readonly #maxTokens: number
  #tokens = 0

  constructor(terms: CompletionTerms) {
    this.#stops = new StopMatcher(terms.stop)
    this.#thought = terms.thought && new ThoughtFilter(terms.thought)
    this.#maxTokens = terms.maxTokens
  }

  /** Generated tokens without the end-of-turn token, which is not part of the reply. */
  get tokens(): number {
    return this.#tokens
  }

  accept(piece: Piece): Progress {
    if (piece.end) return this.#finish("", "stop")
    this.#tokens++
    const whole = this.#utf8.empty && piece.text !== undefined
    const { text, matched } = this.#read(whole ? piece.text : this.#utf8.push(piece.bytes))
    if (matched) return { text, finish: "stop" }
    return this.#tokens >= this.#maxTokens ? this.#finish(text, "length") : { text, finish: undefined }
  }

  #read(text: string) {
    return this.#stops.push(this.#thought === undefined ? text : this.#thought.push(text))
  }

  /**
   * Resolves what was held back, because nothing follows: an incomplete character is dropped, and a stop
   * sequence may still complete in the text that the thought filter held back.
   */
  #finish(before: string, reason: "stop" | "length"): Progress {
    this.#utf8.end()
    const thought = this.#stops.push(this.#thought?.flush() ?? "")
    if (thought.matched) return { text: before + thought.text, finish: "stop" }
    return { text: before + thought.text + this.#stops.flush(), finish: reason }
  }
}
