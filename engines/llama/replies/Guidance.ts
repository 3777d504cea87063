// What decides about the next token of a reply besides the sampler: a grammar, the least length of the reply, and the end of
// its thinking.
import type { Constraint } from "../../grammar/Constraint.ts"
import type { TokenChoice } from "../sampling/LogitSampler.ts"

/** How a thinking block is begun and ended from outside. */
export interface ThinkingTerms {
  /** Most tokens of the block. */
  readonly budget: number
  /** Tokens that open the block, if the reply has to begin with it and the prompt does not. */
  readonly open: ReadonlyArray<number>
  /** Tokens of the closing marker. */
  readonly close: ReadonlyArray<number>
}

interface GuidanceTerms {
  readonly constraint: Constraint | undefined
  /** False: tokens that follow for certain are sampled one by one, so that each has a log probability. */
  readonly runs: boolean
  readonly maxTokens: number
  readonly minTokens: number
  /** The tokens that end a reply. */
  readonly ends: ReadonlySet<number>
  readonly thinking: ThinkingTerms | undefined
}

/** What a reply says of itself. */
interface Thinking {
  readonly thinking: boolean
  readonly reasoningTokens: number
}

const none: ReadonlyArray<number> = []

export class Guidance implements TokenChoice {
  readonly #terms: GuidanceTerms
  #tokens = 0
  #closed = false

  constructor(terms: GuidanceTerms) {
    this.#terms = terms
  }

  readonly allows = (token: number): boolean => {
    const { constraint, ends } = this.#terms
    if (this.#mustGoOn && ends.has(token)) return false
    return constraint === undefined || constraint.allows(token, this.#left)
  }

  readonly find = (): boolean => this.#terms.constraint?.find(this.#left) ?? true

  readonly mask = (logits: Float32Array): void => {
    const { constraint, ends } = this.#terms
    constraint?.mask(logits, this.#left)
    if (!this.#mustGoOn) return
    // If nothing but the end may follow, the least length cannot be kept.
    if (constraint !== undefined && !logits.some((logit, token) => logit > -Infinity && !ends.has(token)))
      return
    for (const token of ends) logits[token] = -Infinity
  }

  /** Undefined if any token may be next, which spares the sampler the question. */
  get choice(): TokenChoice | undefined {
    return this.#terms.constraint === undefined && this.#terms.minTokens === 0 ? undefined : this
  }

  /** The token was appended to the reply; it is none that ends it. */
  accept(token: number): void {
    this.#tokens++
    this.#terms.constraint?.accept(token)
  }

  /** Tokens that come next for certain. */
  forced(reply: Thinking): ReadonlyArray<number> {
    const { constraint, runs, thinking } = this.#terms
    if (thinking !== undefined && reply.thinking) {
      if (this.#closed || reply.reasoningTokens < thinking.budget) return none
      this.#closed = true
      return thinking.close
    }
    return runs && constraint !== undefined ? constraint.forced(this.#left) : none
  }

  /** Tokens with which the reply begins for certain. */
  lead(reply: Thinking): ReadonlyArray<number> {
    const open = this.#terms.thinking?.open ?? none
    return open.length > 0 ? open : this.forced(reply)
  }

  /** True if nothing but the end may follow. */
  finished(): boolean {
    return this.#terms.constraint?.finished() ?? false
  }

  /** True if the bound is reached and the grammar is complete. */
  endsAtBound(): boolean {
    return this.#left <= 0 && (this.#terms.constraint?.complete() ?? false)
  }

  get #left(): number {
    return this.#terms.maxTokens - this.#tokens
  }

  get #mustGoOn(): boolean {
    return this.#tokens < this.#terms.minTokens
  }
}
