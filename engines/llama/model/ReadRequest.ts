// What a request asks for, as the terms of a job for each of its replies. Fails before anything starts if the model cannot do it.
import * as Effect from "effect/Effect"
import type { Constraint } from "../../grammar/Constraint.ts"
import { textPromptsOf } from "../../protocol/Contents.ts"
import {
  type EngineError,
  type GenerateRequest,
  invalidInput,
  type Outlet,
  type Prepared,
} from "../../protocol/Engine.ts"
import type { Prompt } from "../prompt/ChatPrompt.ts"
import { DetailedReply, type DetailedTerms } from "../replies/DetailedReply.ts"
import { EchoedPrompt } from "../replies/EchoedPrompt.ts"
import { Guidance, type ThinkingTerms } from "../replies/Guidance.ts"
import { plainReply, type ReplyEnd } from "../replies/Reply.ts"
import type { Biases } from "../sampling/LogitSampler.ts"
import type { JobTerms } from "../steps/Job.ts"
import type { RowReading } from "../steps/Reading.ts"
import { leadingThought } from "./Constraints.ts"
import type { Model } from "./LoadedGguf.ts"
import { readPrompt } from "./ReadPrompt.ts"

export interface ReplyPlan {
  /** One for each reply. */
  readonly jobs: readonly [JobTerms, ...ReadonlyArray<JobTerms>]
}

/** True if the request asks for nothing but the text of one reply, as most do. */
const isPlain = (request: GenerateRequest): boolean =>
  request.logprobs === undefined &&
  request.logitBias === undefined &&
  (request.minTokens ?? 0) === 0 &&
  request.thinkingTokens === undefined &&
  request.format === undefined &&
  request.tools === undefined &&
  (request.replies ?? 1) === 1 &&
  (request.bestOf ?? 1) === 1 &&
  request.echo !== true

const problemOf = (model: Model, slots: number, request: GenerateRequest): EngineError | undefined => {
  const { bestOf = 1, logitBias = [], replies = 1 } = request
  const field = bestOf > slots ? "best_of" : "n"
  if (Math.max(bestOf, replies) > slots)
    return invalidInput(field, `is more than the ${slots} replies that this model generates side by side`)
  const { size } = model.vocabulary
  const unknown = logitBias.find(([token]) => !(token >= 0 && token < size))
  return unknown === undefined
    ? undefined
    : invalidInput("logit_bias", `has the token ${unknown[0]}; this model has the tokens 0 to ${size - 1}`)
}

/** A bias of -100 excludes a token. */
const biasesOf = ({ logitBias }: GenerateRequest): Biases | undefined =>
  logitBias === undefined || logitBias.length === 0
    ? undefined
    : logitBias.map(([token, bias]) => [token, bias <= -100 ? -Infinity : bias])

/**
 * A reply under a constraint has to open the block by force, because its grammar begins with thinking. Other replies think if the
 * model begins to.
 */
const thinkingOf = (
  model: Model,
  { thought }: Prompt,
  request: GenerateRequest,
): ThinkingTerms | undefined => {
  const { thinkingTokens: budget } = request
  if (budget === undefined || thought === undefined) return undefined
  const isConstrained = request.format !== undefined || request.tools !== undefined
  return {
    budget,
    open: isConstrained && !thought.startsInside ? model.prompts.markerTokens(thought.open) : [],
    close: model.prompts.markerTokens(thought.close),
  }
}

export const readRequest = (
  model: Model,
  slots: number,
  request: GenerateRequest,
  out: Outlet<"text">,
  prepared?: Prepared,
): Effect.Effect<ReplyPlan, EngineError> =>
  Effect.suspend(() => {
    const problem = problemOf(model, slots, request)
    if (problem !== undefined) return Effect.fail(problem)
    if (isPlain(request))
      return Effect.map(readPrompt(model, request), (prompt) => plainPlan(model, prompt, request, out))
    return Effect.flatMap(readPrompt(model, request), (prompt) =>
      Effect.map(
        model.constraints.of(request, leadingThought(prompt.thought, request.thinkingTokens), prepared),
        (constrain) => planOf(model, prompt, request, out, constrain),
      ),
    )
  })

const commonTerms = (
  model: Model,
  { thought, tokens }: Prompt,
  request: GenerateRequest,
  out: Outlet<"text">,
) => ({
  stop: request.stop,
  maxTokens: Math.min(request.maxTokens, model.contextTokens - tokens.length),
  thought,
  out,
})

/** What of the terms of a job is about its prompt. */
const promptTerms = ({ marks, shared, spans, tokens }: Prompt, { owner }: GenerateRequest) => ({
  prompt: tokens,
  spans,
  marks,
  owner,
  shared,
})

const plainPlan = (
  model: Model,
  prompt: Prompt,
  request: GenerateRequest,
  out: Outlet<"text">,
): ReplyPlan => {
  const reply = plainReply(commonTerms(model, prompt, request, out), model.vocabulary)
  return { jobs: [{ ...promptTerms(prompt, request), sampling: request.sampling, reply, out }] }
}

const planOf = (
  model: Model,
  prompt: Prompt,
  request: GenerateRequest,
  out: Outlet<"text">,
  constrain: (() => Constraint) | undefined,
): ReplyPlan => {
  const { format, sampling, tools } = request
  const terms = commonTerms(model, prompt, request, out)
  const tally = { tokens: 0 }
  const biases = biasesOf(request)
  const count = Math.max(request.replies ?? 1, request.bestOf ?? 1)
  const echoed = request.echo === true ? echoedOf(model, prompt, request, out, count) : undefined
  const reading = echoed && readingOf(echoed, request)
  const jobOf = (reply: number): JobTerms => {
    const detailed: DetailedTerms = {
      ...terms,
      reply,
      tally,
      prologue: reply === 0 && echoed !== undefined ? () => echoed.begin() : undefined,
      guidance: guidanceOf(model, prompt, request, terms.maxTokens, constrain?.()),
      parser: tools === undefined ? undefined : model.prompts.tools.parser(tools.tools, format !== undefined),
      showsThinking: request.thinkingTokens !== undefined,
      logprobs: request.logprobs,
      ranked: (request.bestOf ?? 1) > (request.replies ?? 1),
    }
    return {
      ...promptTerms(prompt, request),
      sampling: reply === 0 ? sampling : { ...sampling, seed: (sampling.seed + reply) >>> 0 },
      reply: new DetailedReply(detailed, model.vocabulary),
      out,
      ...(biases === undefined ? {} : { biases }),
      ...(reading === undefined ? {} : { reading }),
    }
  }
  // Without tokens there is one reply, whatever their number.
  if (terms.maxTokens === 0) return { jobs: [jobOf(0)] }
  return { jobs: [jobOf(0), ...Array.from({ length: count - 1 }, (_, at) => jobOf(at + 1))] }
}

const echoedOf = (
  { stepped, vocabulary }: Model,
  { tokens }: Prompt,
  { logprobs, prompt }: GenerateRequest,
  out: Outlet<"text">,
  replies: number,
): EchoedPrompt => {
  const { direct } = stepped.native
  const [first] = textPromptsOf(prompt)
  return new EchoedPrompt({
    tokens,
    text: typeof first === "string" ? first : undefined,
    replies,
    logprobs,
    score: (row, token, top) => direct.score(row, token, top),
    out,
    vocabulary,
  })
}

/** What is read of an echoed prompt; undefined: nothing, and a reply follows. */
const readingOf = (
  echoed: EchoedPrompt,
  { logprobs, maxTokens }: GenerateRequest,
): RowReading | undefined => {
  const end: ReplyEnd | undefined =
    maxTokens === 0 ? { finishReason: "length", completionTokens: 0 } : undefined
  if (logprobs === undefined && end === undefined) return undefined
  return { at: logprobs === undefined ? [] : "all", rows: (count) => echoed.rows(count), end }
}

const guidanceOf = (
  model: Model,
  prompt: Prompt,
  request: GenerateRequest,
  maxTokens: number,
  constraint: Constraint | undefined,
): Guidance | undefined => {
  const thinking = thinkingOf(model, prompt, request)
  const minTokens = request.minTokens ?? 0
  if (thinking === undefined && minTokens === 0 && constraint === undefined) return undefined
  return new Guidance({
    constraint,
    runs: request.logprobs === undefined,
    maxTokens,
    minTokens,
    ends: minTokens > 0 ? model.vocabulary.ends : new Set(),
    thinking,
  })
}
