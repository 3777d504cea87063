// Decodes one window at one temperature: draft check, token loop, probabilities. Transcribe chooses the temperature
// and accepts or rejects the result. Knows no audio, segments or requests.
import * as Effect from "effect/Effect"
import type { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { cutTo, type DecoderState } from "../shared/listening/KeyValueCache.ts"
import type { KeywordGraph } from "../shared/listening/KeywordGraph.ts"
import { type Following, KeywordSearch, type KindOf } from "../shared/listening/KeywordSearch.ts"
import { choose, probability, seededRandom } from "../shared/listening/Sampling.ts"
import type { DecoderGraph, DecoderOutput } from "./DecoderGraph.ts"
import type { Prompt } from "./Prompt.ts"
import { Rereading } from "./Rereading.ts"
import {
  applyTimestampRules,
  suppress,
  suppressControls,
  suppressTimestamps,
} from "./rules/TimestampRules.ts"
import type { WhisperModel } from "./WhisperModel.ts"

/** The decoder's state after a prompt, and perhaps a draft; every attempt starts from it. */
export interface ReadPrompt {
  readonly prompt: Prompt
  readonly hidden: Tensor
  readonly timestamps: boolean
  /** Draft tokens, fed together with the prompt. */
  readonly draft: ReadonlyArray<number>
  /** Expected tokens, fed in pieces while they agree with the output; for graphs that take several tokens at once. */
  readonly expected: ReadonlyArray<number>
  readonly output: DecoderOutput
  /** 0 for models without the no-speech token. */
  readonly noSpeechProb: number
  /** Phrases of the request. */
  readonly keywords: KeywordGraph | undefined
}

interface Attempt {
  /** Text and timestamp tokens, without the end-of-text token. */
  readonly tokens: ReadonlyArray<number>
  /** Of each of the tokens. */
  readonly logprobs: ReadonlyArray<number>
  readonly avgLogprob: number
}

/** Seed of the first attempt; fixed, so that the same audio always gives the same text. */
const seed = 0x5eed

export const readPrompt = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  hidden: Tensor,
  prompt: Prompt,
  options: {
    readonly timestamps: boolean
    readonly draft: ReadonlyArray<number>
    readonly expected: ReadonlyArray<number>
    readonly keywords: KeywordGraph | undefined
  },
) {
  const draft = options.draft.slice(0, prompt.sampleLimit)
  const output = yield* graph.first([...prompt.tokens, ...draft], hidden)
  const noSpeechProb =
    model.noSpeech === undefined ? 0 : probability(output.row(prompt.startAt), model.noSpeech)
  const { expected, keywords, timestamps } = options
  return { prompt, hidden, timestamps, draft, expected, output, noSpeechProb, keywords } satisfies ReadPrompt
})

/** Sets the logits of forbidden tokens to -Infinity, in place. */
export const restrict = (
  model: WhisperModel,
  row: Float32Array,
  sampled: ReadonlyArray<number>,
  timestamps: boolean,
) => {
  suppressControls(row, model.layout)
  suppress(row, model.suppressed)
  if (sampled.length === 0) suppress(row, model.suppressedFirst)
  if (timestamps) applyTimestampRules(row, sampled, model.layout)
  else suppressTimestamps(row, model.layout)
}

/** Trials of one window that may fail, each of which costs the decoder calls of its tokens. Behind them no more begin. A guess. */
const mostFailedTrials = 24

/** What kind of token comes next, for the search of phrases. */
const kindOf =
  ({ layout }: WhisperModel): KindOf =>
  (token) =>
    token >= layout.endOfText ? "mark" : "text"

const nothingFollowed: Following = { nodes: [], trial: undefined }

/** The tokens of one attempt, as they are chosen. */
class Chosen {
  readonly tokens: Array<number> = []
  readonly logprobs: Array<number> = []
  /** Log-probabilities of the tokens of the highest scores: phrases do not make a text look improbable. */
  readonly #best: Array<number> = []
  readonly #model: WhisperModel
  readonly #read: ReadPrompt
  readonly #temperature: number
  readonly #random: () => number
  readonly #search: KeywordSearch | undefined
  #following: Following
  /** Where the running trial began: what was known there. */
  #trial:
    | {
        readonly at: number
        readonly row: Float32Array
        readonly following: Following
        readonly failed: ReadonlyArray<number>
      }
    | undefined
  #failedTrials = 0

  constructor(model: WhisperModel, read: ReadPrompt, temperature: number) {
    this.#model = model
    this.#read = read
    this.#temperature = temperature
    this.#random = seededRandom(seed + Math.round(temperature * 1000))
    const { keywords } = read
    // Sampled tokens follow no phrases.
    this.#search =
      keywords === undefined || temperature > 0 ? undefined : new KeywordSearch(keywords, kindOf(model))
    this.#following = this.#search?.begin ?? nothingFollowed
  }

  /** Over the tokens and the end of the text. */
  get avgLogprob(): number {
    return this.#best.reduce((sum, logprob) => sum + logprob, 0) / (this.tokens.length + 1)
  }

  /**
   * Chooses the next token by its scores, which are changed, or ends the text. A trial of a phrase that fails is taken back: then there are
   * fewer tokens than before.
   */
  take(row: Float32Array): number {
    restrict(this.#model, row, this.tokens, this.#read.timestamps)
    return this.#choose(row, [])
  }

  #choose(row: Float32Array, failed: ReadonlyArray<number>): number {
    const { logprob, token: best } = choose(row, this.#temperature, this.#random)
    const search = this.#failedTrials < mostFailedTrials ? this.#search : undefined
    const isTrial = this.#following.trial !== undefined
    const chosen = search?.choose(this.#following, row, best, failed)
    if (search !== undefined && chosen === undefined) return this.#giveBack()
    if (chosen?.opens === true) {
      const at = this.tokens.length
      const kept = this.#trial?.at === at ? this.#trial.row : row.slice()
      this.#trial = { at, row: kept, following: isTrial ? nothingFollowed : this.#following, failed }
    }
    const { following, gap, token } = chosen ?? { token: best, gap: 0, following: this.#following }
    this.#following = following
    if (following.trial === undefined) this.#trial = undefined
    this.#best.push(logprob)
    if (token !== this.#model.layout.endOfText) {
      this.tokens.push(token)
      this.logprobs.push(logprob - gap)
    }
    return token
  }

  #giveBack(): number {
    const { at, failed, following, row } = this.#trial!
    this.#failedTrials++
    const tried = this.tokens[at]!
    for (const list of [this.tokens, this.logprobs, this.#best]) list.length = at
    this.#following = following
    return this.#choose(row, [...failed, tried])
  }

  /** Drops the beginning of a phrase that was not completed before the last possible token. */
  finish(): void {
    if (this.#trial === undefined || this.#search?.isComplete(this.#following) !== false) return
    for (const list of [this.tokens, this.logprobs, this.#best]) list.length = this.#trial.at
  }
}

export const attempt = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  read: ReadPrompt,
  temperature: number,
): Effect.fn.Return<Attempt, EngineError> {
  const { prompt, hidden, draft, output } = read
  const chosen = new Chosen(model, read, temperature)
  const { tokens } = chosen
  const last = prompt.tokens.length - 1
  // The prompt's logits are shared by all temperatures, so each attempt masks a copy.
  let token = chosen.take(output.row(last).slice())
  // Draft tokens are accepted while this decoding chooses the same ones; the logits at each give the next token.
  while (temperature === 0 && tokens.length <= draft.length && token === draft[tokens.length - 1]) {
    if (tokens.length >= prompt.sampleLimit) break
    const before = tokens.length
    token = chosen.take(output.row(last + before).slice())
    // A trial has failed: the draft contained it.
    if (tokens.length <= before && token !== model.layout.endOfText) break
  }
  /** The state does not include the token that was chosen last. */
  const length = () => prompt.tokens.length + tokens.length - (token === model.layout.endOfText ? 0 : 1)
  const shared: DecoderState = cutTo(output.state, length())
  let state = shared
  // Sampled tokens do not follow a draft.
  const rereadingOf = () => {
    const made = new Rereading(temperature === 0 ? read.expected : [], model.layout.timestampBegin)
    for (const each of tokens) made.observe(each)
    return made
  }
  let rereading = rereadingOf()
  while (token !== model.layout.endOfText && tokens.length < prompt.sampleLimit) {
    const guess = rereading.guess().slice(0, prompt.sampleLimit - tokens.length)
    const next = yield* graph.next([token, ...guess], state, hidden)
    // The prompt's own state is shared by the other temperatures.
    if (state !== shared) graph.release(state)
    for (let right = 0; ; right++) {
      const before = tokens.length
      token = chosen.take(next.row(right))
      const isBack = tokens.length <= before && token !== model.layout.endOfText
      if (isBack) rereading = rereadingOf()
      else if (token !== model.layout.endOfText) rereading.observe(token)
      if (isBack || token !== guess[right] || tokens.length >= prompt.sampleLimit) break
    }
    next.forget()
    state = cutTo(next.state, length())
    if (state !== next.state) graph.release(next.state)
  }
  if (state !== shared) graph.release(state)
  chosen.finish()
  return { tokens, logprobs: chosen.logprobs, avgLogprob: chosen.avgLogprob }
})
