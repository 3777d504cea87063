// Decodes one window at one temperature: draft check, token loop, probabilities. Called by Transcribe, which chooses
// the temperature and judges the result; it must not know audio, segments or requests.
import * as Effect from "effect/Effect"
import type { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { cutTo, type DecoderState } from "../shared/listening/KeyValueCache.ts"
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

/** A prompt that the decoder has read, possibly followed by a draft; every attempt starts from here. */
export interface ReadPrompt {
  readonly prompt: Prompt
  readonly hidden: Tensor
  readonly timestamps: boolean
  /** Read together with the prompt. */
  readonly draft: ReadonlyArray<number>
  /** Read in pieces where it agrees with what comes out; for graphs that take several tokens at once. */
  readonly expected: ReadonlyArray<number>
  readonly output: DecoderOutput
  /** 0 for models without the token. */
  readonly noSpeechProb: number
}

export interface Attempt {
  /** Text and timestamp tokens, without end of text. */
  readonly tokens: ReadonlyArray<number>
  readonly avgLogprob: number
  /** Draft tokens that a fresh decoding would have produced too. */
  readonly draftAccepted: number
}

/** Seed of the first attempt; a fixed number, so that the same audio always gives the same text. */
const SEED = 0x5eed

export const readPrompt = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  hidden: Tensor,
  prompt: Prompt,
  options: {
    readonly timestamps: boolean
    readonly draft: ReadonlyArray<number>
    readonly expected: ReadonlyArray<number>
  },
) {
  const draft = options.draft.slice(0, prompt.sampleLimit)
  const output = yield* graph.first([...prompt.tokens, ...draft], hidden)
  const noSpeechProb =
    model.noSpeech === undefined ? 0 : probability(output.row(prompt.startAt), model.noSpeech)
  const { expected, timestamps } = options
  return { prompt, hidden, timestamps, draft, expected, output, noSpeechProb } satisfies ReadPrompt
})

/** Masks what may not come next; works on `row` in place. */
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

export const attempt = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  read: ReadPrompt,
  temperature: number,
): Effect.fn.Return<Attempt, EngineError> {
  const { prompt, hidden, draft, output } = read
  const random = seededRandom(SEED + Math.round(temperature * 1000))
  const tokens: Array<number> = []
  let sum = 0
  const take = (row: Float32Array): number => {
    restrict(model, row, tokens, read.timestamps)
    const { token, logprob } = choose(row, temperature, random)
    sum += logprob
    if (token !== model.layout.endOfText) tokens.push(token)
    return token
  }
  const last = prompt.tokens.length - 1
  // The prompt's logits serve every temperature, so each attempt masks its own copy.
  let token = take(output.row(last).slice())
  let accepted = 0
  // A draft is right as long as this decoding chooses the same tokens; the draft's own logits say what comes next.
  while (temperature === 0 && accepted < draft.length && token === draft[accepted]) {
    accepted++
    if (tokens.length >= prompt.sampleLimit) break
    token = take(output.row(last + accepted).slice())
  }
  const shared: DecoderState = cutTo(output.state, prompt.tokens.length + accepted)
  let state = shared
  // Drawn tokens follow no draft.
  const rereading = new Rereading(temperature === 0 ? read.expected : [], model.layout.timestampBegin)
  for (const each of tokens) rereading.heard(each)
  while (token !== model.layout.endOfText && tokens.length < prompt.sampleLimit) {
    const guess = rereading.guess().slice(0, prompt.sampleLimit - tokens.length)
    const next = yield* graph.next([token, ...guess], state, hidden)
    // The prompt's own state serves the other temperatures too.
    if (state !== shared) graph.release(state)
    let right = 0
    for (;;) {
      token = take(next.row(right))
      if (token !== model.layout.endOfText) rereading.heard(token)
      if (token !== guess[right] || tokens.length >= prompt.sampleLimit) break
      right++
    }
    next.forget()
    // The token that was chosen last is not in it yet.
    const length = next.state.length - guess.length + right
    state = cutTo(next.state, length)
    if (state !== next.state) graph.release(next.state)
  }
  if (state !== shared) graph.release(state)
  return { tokens, avgLogprob: sum / (tokens.length + 1), draftAccepted: accepted }
})
