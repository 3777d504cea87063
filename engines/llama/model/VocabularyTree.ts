// The tree of a model's vocabulary, which grammars need. Making it takes half a second of the event loop for 151,936 tokens, so a load
// does not wait for it: it is made in slices while the model has no request, or once a request needs it.
import { TokenTrie } from "../../grammar/match/TokenTrie.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"

/** Milliseconds of a slice, after which replies that run get their turn. A guess. */
const sliceMs = 2

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export class VocabularyTree {
  readonly #vocabulary: Vocabulary
  #slices: Generator<undefined, TokenTrie> | undefined
  #made: TokenTrie | undefined

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary
  }

  get isMade(): boolean {
    return this.#made !== undefined
  }

  /** The tree. What is missing of it is made now; several callers may wait for it. */
  async get(): Promise<TokenTrie> {
    for (;;) {
      const made = this.#goOn()
      if (made !== undefined) return made
      await nextTurn()
    }
  }

  /** Makes it until it is complete or `isWanted` returns true, which is asked between two slices. */
  async prepare(isWanted: () => boolean): Promise<void> {
    while (!isWanted() && this.#goOn() === undefined) await nextTurn()
  }

  /** A slice of the work. */
  #goOn(): TokenTrie | undefined {
    const begunMs = performance.now()
    while (this.#made === undefined && performance.now() - begunMs < sliceMs) {
      const slices = this.#slices ?? TokenTrie.inSlices(this.#vocabulary)
      // A failure ends a generator, and the next slice begins anew.
      this.#slices = undefined
      const slice = slices.next()
      if (slice.done === true) this.#made = slice.value
      else this.#slices = slices
    }
    return this.#made
  }
}
