// How probable it is that a user's message ends where it does: a `generate` without a reply, which reads the logits behind the message
// and behind each of its last words. What of the conversation a sequence holds already is not evaluated again.
import * as Effect from "effect/Effect"
import {
  type EngineError,
  type GenerateEnd,
  type GenerateRequest,
  invalidInput,
  type MessageEndTerms,
  type NoMessageEnd,
  type Outlet,
} from "../../protocol/Engine.ts"
import { plainReply } from "../replies/Reply.ts"
import type { JobTerms } from "../steps/Job.ts"
import { type RowReading, readEnd } from "../steps/Reading.ts"
import type { Model } from "./LoadedGguf.ts"
import { readPrompt } from "./ReadPrompt.ts"

/** Words of the message after which its end is looked for; at most `mostRows`. A guess. */
const mostWords = 12

interface MessageEndPlan {
  readonly job: JobTerms
  /** Once the job has ended. */
  readonly end: () => GenerateEnd
}

/** A plan, or why there is no such probability, which needs no sequence. */
export const messageEndPlan = (
  model: Model,
  request: GenerateRequest,
  { withinMs }: MessageEndTerms,
  out: Outlet<"text">,
): Effect.Effect<MessageEndPlan | NoMessageEnd, EngineError> =>
  Effect.map(readPrompt(model, request), ({ shared }) => {
    const { direct } = model.stepped.native
    const open = model.prompts.open(request, model.vocabulary, mostWords)
    if (open === undefined) return "template"
    const groups = [
      [...new Set([open.end, ...model.vocabulary.ends])],
      [...new Set([open.end, ...model.vocabulary.ends, ...model.prompts.sentenceEnds])],
    ]
    const ends: Array<number> = []
    const stops: Array<number> = []
    let refused: NoMessageEnd | undefined
    const reading: RowReading = {
      at: open.wordEnds,
      rows: (count) => {
        for (let row = 0; row < count; row++) {
          const [end, stop] = direct.masses(row, groups)
          ends.push(end!)
          stops.push(stop!)
        }
      },
      unless: {
        withinMs,
        refused: (why) => {
          refused = why
        },
      },
      end: readEnd,
    }
    const { owner, sampling, stop } = request
    const reply = plainReply({ stop, maxTokens: 1, thought: undefined, out }, model.vocabulary)
    const prompt = { prompt: open.tokens, spans: [], marks: [], owner, shared }
    const job: JobTerms = { ...prompt, sampling, reply, out, reading }
    const end = (): GenerateEnd => ({
      finishReason: "stop",
      promptTokens: open.tokens.length,
      completionTokens: 0,
      messageEnd: refused ?? { ends, stops },
    })
    return { job, end }
  })

/** The end of a request for a probability that there is not. */
export const noMessageEnd = (why: NoMessageEnd, out: Outlet<"text">): GenerateEnd => {
  out.started({ promptTokens: 0, cachedTokens: 0 })
  return { finishReason: "stop", promptTokens: 0, completionTokens: 0, messageEnd: why }
}

/** Fails where a request for it asks for what no probability can be found of. */
export const messageEndProblem = ({
  messageEnd,
  pictures,
  prompt,
}: GenerateRequest): EngineError | undefined => {
  if (messageEnd === undefined) return undefined
  const last = "turns" in prompt ? prompt.turns.at(-1) : undefined
  if (last?.role === "user" && typeof last.content === "string" && (pictures ?? []).length === 0)
    return undefined
  return invalidInput("messages", "needs a chat without pictures whose last message is one of the user")
}
