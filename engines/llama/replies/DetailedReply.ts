// A reply of a request that asks for more than text: its number among several, parts, log probabilities, a grammar.
import type { DeltaDetail, GenerateStarted, SampledLogprob } from "../../protocol/Text.ts"
import { PartedCompletion, type PieceParser, type TextPiece } from "../output/PartedCompletion.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { TokenChoice } from "../sampling/LogitSampler.ts"
import type { Score } from "../sampling/Scores.ts"
import type { Guidance } from "./Guidance.ts"
import type { Reply, ReplyEnd, ReplyTerms } from "./Reply.ts"
import { shownScore } from "./ShownScore.ts"

/** Completion tokens of all replies of a request. */
interface Tally {
  tokens: number
}

export interface DetailedTerms extends ReplyTerms {
  /** Which reply of its request. */
  readonly reply: number
  readonly tally: Tally
  /** Pushes what comes before the first token: an echoed prompt. */
  readonly prologue: (() => void) | undefined
  readonly guidance: Guidance | undefined
  readonly parser: PieceParser | undefined
  readonly showsThinking: boolean
  /** Log probabilities are reported, each with so many of the most likely tokens. */
  readonly logprobs: number | undefined
  /** The end has the reply's likelihood. */
  readonly ranked: boolean
}

type Finish = ReplyEnd["finishReason"]

/** Neighbouring pieces of the same part as one, so that a run of tokens is one delta. */
const joined = (pieces: ReadonlyArray<TextPiece>): ReadonlyArray<TextPiece> => {
  if (pieces.length < 2) return pieces
  const all: Array<TextPiece> = []
  for (const piece of pieces) {
    const last = all.at(-1)
    const { kind, call } = { kind: undefined, call: undefined, ...piece.part }
    const joins =
      last !== undefined &&
      kind !== "call" &&
      last.part?.kind === kind &&
      (last.part?.kind !== "arguments" || last.part.call === call)
    if (joins) all[all.length - 1] = { ...last, text: last.text + piece.text }
    else all.push(piece)
  }
  return all
}

export class DetailedReply implements Reply {
  readonly lead: ReadonlyArray<number>
  readonly choice: TokenChoice | undefined
  readonly scored: number | undefined
  readonly #terms: DetailedTerms
  readonly #vocabulary: Vocabulary
  readonly #completion: PartedCompletion
  /** The lead is taken together with the first sampled token. */
  #hasTakenLead: boolean
  /** Of tokens whose text has not been pushed. */
  #logprobs: Array<SampledLogprob> = []
  #sum = 0
  #summed = 0

  constructor(terms: DetailedTerms, vocabulary: Vocabulary) {
    this.#terms = terms
    this.#vocabulary = vocabulary
    this.#completion = new PartedCompletion(terms)
    const { guidance, logprobs, maxTokens, ranked } = terms
    this.choice = guidance?.choice
    this.lead = guidance?.lead(this.#completion).slice(0, maxTokens - 1) ?? []
    for (const token of this.lead) guidance?.accept(token)
    this.#hasTakenLead = this.lead.length === 0
    this.scored = logprobs ?? (ranked ? 0 : undefined)
  }

  begin(started: GenerateStarted): void {
    const { out, prologue, reply } = this.#terms
    if (reply === 0) out.started(started)
    prologue?.()
  }

  take(sampled: number, score: Score | undefined): ReadonlyArray<number> | ReplyEnd {
    const { guidance } = this.#terms
    const pieces: Array<TextPiece> = []
    const tokens: Array<number> = []
    let finish = this.#hasTakenLead ? undefined : this.#takeLead(pieces)
    if (finish === undefined) {
      finish = this.#accept(sampled, score, pieces)
      tokens.push(sampled)
    }
    if (finish === undefined)
      for (const token of guidance?.forced(this.#completion) ?? []) {
        finish = this.#accept(token, undefined, pieces)
        tokens.push(token)
        if (finish !== undefined) break
      }
    this.#push(pieces, finish !== undefined)
    return finish === undefined ? tokens : this.#end(finish)
  }

  /** The lead was accepted by the guidance when it was chosen. */
  #takeLead(pieces: Array<TextPiece>): Finish | undefined {
    this.#hasTakenLead = true
    for (const token of this.lead) {
      const progress = this.#completion.accept(this.#vocabulary.piece(token))
      pieces.push(...progress.pieces)
      this.#terms.tally.tokens++
      if (progress.finish !== undefined) return progress.finish
    }
    return undefined
  }

  /** Adds a token; returns the reason if the reply ends with it. */
  #accept(token: number, score: Score | undefined, pieces: Array<TextPiece>): Finish | undefined {
    const { guidance, logprobs, tally } = this.#terms
    const piece = this.#vocabulary.piece(token)
    if (!piece.end) {
      tally.tokens++
      guidance?.accept(token)
      if (score !== undefined) {
        this.#sum += score.logprob
        this.#summed++
        if (logprobs !== undefined) this.#logprobs.push(shownScore(this.#vocabulary, score))
      }
    }
    const progress = this.#completion.accept(piece, guidance !== undefined && this.#isWhole(guidance))
    pieces.push(...progress.pieces)
    return progress.finish
  }

  /** True if the reply ends with the token that the guidance accepted last, also if its bound is reached with it. */
  #isWhole(guidance: Guidance): boolean {
    // Further calls could follow, but the bound leaves no token for them.
    return guidance.finished() || (this.#completion.hasCalls && guidance.endsAtBound())
  }

  /** Pushes the pieces, the log probabilities with the first piece of the answer. */
  #push(pieces: ReadonlyArray<TextPiece>, isLast: boolean): void {
    const { out, tally } = this.#terms
    const completionTokens = tally.tokens
    for (const { part, text } of joined(pieces))
      out.push({
        text,
        completionTokens,
        ...this.#detail(part, part === undefined ? this.#takeLogprobs() : []),
      })
    // Tokens of thinking and of calls have none, nor have those of a stop sequence.
    if (isLast || pieces.some(({ part }) => part !== undefined)) this.#logprobs = []
  }

  #takeLogprobs(): ReadonlyArray<SampledLogprob> {
    const logprobs = this.#logprobs
    this.#logprobs = []
    return logprobs
  }

  #detail(
    part: TextPiece["part"],
    logprobs: ReadonlyArray<SampledLogprob>,
  ): { readonly detail?: DeltaDetail } {
    const { reply } = this.#terms
    if (reply === 0 && part === undefined && logprobs.length === 0) return {}
    return {
      detail: {
        ...(reply === 0 ? {} : { reply }),
        ...(part === undefined ? {} : { part }),
        ...(logprobs.length === 0 ? {} : { logprobs }),
      },
    }
  }

  #end(finishReason: Finish): ReplyEnd {
    const { ranked, showsThinking } = this.#terms
    return {
      finishReason,
      completionTokens: this.#completion.tokens,
      ...(showsThinking ? { reasoningTokens: this.#completion.reasoningTokens } : {}),
      ...(ranked ? { likelihood: this.#summed === 0 ? 0 : this.#sum / this.#summed } : {}),
    }
  }
}
