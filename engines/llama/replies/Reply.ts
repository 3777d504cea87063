// The state of one reply from its first token to its last: which tokens it may continue with, its text, and its end. StepLoop
// evaluates and samples; a reply decides what to do with a token.
import type { GenerateFinish, GenerateStarted, Outlet } from "../../protocol/Engine.ts"
import { Completion } from "../output/Completion.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { TokenChoice } from "../sampling/LogitSampler.ts"
import type { Score } from "../sampling/Scores.ts"

/** The end of one reply. */
export interface ReplyEnd {
  readonly finishReason: GenerateFinish
  readonly completionTokens: number
  readonly reasoningTokens?: number
  /** Mean log probability of its tokens, if it was computed. */
  readonly likelihood?: number
}

export interface Reply {
  /** Tokens with which it begins for certain. They are evaluated together with the prompt. */
  readonly lead: ReadonlyArray<number>
  /** Which tokens it may continue with; undefined: any. */
  readonly choice: TokenChoice | undefined
  /** How many of the most likely tokens are reported with each token. Undefined: log probabilities are not needed. */
  readonly scored: number | undefined
  /** Called once, when the prompt was understood. */
  readonly begin: (started: GenerateStarted) => void
  /**
   * Adds a sampled token, and the tokens that follow it for certain, and pushes their text. Returns all of them, which have to
   * be evaluated before the next token is sampled, or the reply's end.
   */
  readonly take: (token: number, score: Score | undefined) => ReadonlyArray<number> | ReplyEnd
}

export interface ReplyTerms {
  readonly stop: ReadonlyArray<string>
  /** At most what the context has left. 0 only for a job that ends behind its prompt. */
  readonly maxTokens: number
  readonly thought: ThoughtMarkers | undefined
  readonly out: Outlet<"text">
}

const none: ReadonlyArray<number> = []

/** The only reply of a request that asks for nothing but text. */
export const plainReply = (terms: ReplyTerms, vocabulary: Vocabulary): Reply => {
  const completion = new Completion(terms)
  const { out } = terms
  return {
    lead: none,
    choice: undefined,
    scored: undefined,
    begin: (started) => out.started(started),
    take: (token) => {
      const { text, finish } = completion.accept(vocabulary.piece(token))
      const completionTokens = completion.tokens
      if (text !== "") out.push({ text, completionTokens })
      return finish === undefined ? [token] : { finishReason: finish, completionTokens }
    },
  }
}
