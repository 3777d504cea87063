// Decodes one window at one temperature: draft check, token loop, probabilities. Transcribe chooses the temperature
// and accepts or rejects the result. Knows no audio, segments or requests.
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
  },
) {
  const draft = options.draft.slice(0, prompt.sampleLimit)
  const output = yield* graph.first([...prompt.tokens, ...draft], hidden)
  const noSpeechProb =
    model.noSpeech === undefined ? 0 : probability(output.row(prompt.startAt), model.noSpeech)
  const { expected, timestamps } = options
  return { prompt, hidden, timestamps, draft, expected, output, noSpeechProb } satisfies ReadPrompt
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

export const attempt = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  read: ReadPrompt,
  temperature: number,
): Effect.fn.Return<Attempt, EngineError> {
  const { prompt, hidden, draft, output } = read
  const random = seededRandom(seed + Math.round(temperature * 1000))
  const tokens: Array<number> = []
  const logprobs: Array<number> = []
  let sum = 0
  const take = (row: Float32Array): number => {
    restrict(model, row, tokens, read.timestamps)
    const { token, logprob } = choose(row, temperature, random)
    sum += logprob
    if (token !== model.layout.endOfText) {
      tokens.push(token)
      logprobs.push(logprob)
    }
    return token
  }
  const last = prompt.tokens.length - 1
  // The prompt's logits are shared by all temperatures, so each attempt masks a copy.
  let token = take(output.row(last).slice())
  let accepted = 0
  // Draft tokens are accepted while this decoding chooses the same ones; the logits at each give the next token.
  while (temperature === 0 && accepted < draft.length && token === draft[accepted]) {
    accepted++
    if (tokens.length >= prompt.sampleLimit) break
    token = take(output.row(last + accepted).slice())
  }
  const shared: DecoderState = cutTo(output.state, prompt.tokens.length + accepted)
  let state = shared
  // Sampled tokens do not follow a draft.
  const rereading = new Rereading(temperature === 0 ? read.expected : [], model.layout.timestampBegin)
  for (const each of tokens) rereading.observe(each)
  while (token !== model.layout.endOfText && tokens.length < prompt.sampleLimit) {
    const guess = rereading.guess().slice(0, prompt.sampleLimit - tokens.length)
    const next = yield* graph.next([token, ...guess], state, hidden)
    // The prompt's own state is shared by the other temperatures.
    if (state !== shared) graph.release(state)
    let right = 0
    for (;;) {
      token = take(next.row(right))
      if (token !== model.layout.endOfText) rereading.observe(token)
      if (token !== guess[right] || tokens.length >= prompt.sampleLimit) break
      right++
    }
    next.forget()
    // The state does not include the token that was chosen last.
    const length = next.state.length - guess.length + right
    state = cutTo(next.state, length)
    if (state !== next.state) graph.release(next.state)
  }
  if (state !== shared) graph.release(state)
  return { tokens, logprobs, avgLogprob: sum / (tokens.length + 1) }
})
