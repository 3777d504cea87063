// One answer of a chat on a running node, streamed: its text piece by piece, and at the end what it took.
import { Clock, Effect, Schema } from "effect"
import { ChatEvent } from "#domain/wire/events/TextEvents.ts"
import { eachEvent, localFailure, type NodeAccess } from "../shared/NodeClient.ts"
import { postJson } from "../shared/NodeReplies.ts"
import type { Message } from "./Conversation.ts"

export interface ChatOptions {
  readonly model: string
  readonly maxTokens: number
  readonly temperature: number | undefined
  readonly effort: string | undefined
}

export interface Answer {
  readonly text: string
  readonly reasoning: string
  /** Absent: the answer was stopped. */
  readonly finishReason?: string
  readonly promptTokens?: number
  readonly completionTokens?: number
  /** From the request to the first piece of text or thinking. Absent: there was none. */
  readonly firstTokenMs?: number
  readonly totalMs: number
  readonly receiptId?: string
}

export interface AnswerListener {
  readonly onText: (text: string) => void
  readonly onReasoning: (text: string) => void
}

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(ChatEvent))

const bodyOf = (
  { effort, maxTokens, model, temperature }: ChatOptions,
  messages: ReadonlyArray<Message>,
) => ({
  model,
  messages,
  max_tokens: maxTokens,
  ...(temperature === undefined ? {} : { temperature }),
  ...(effort === undefined ? {} : { reasoning_effort: effort }),
  stream: true,
  stream_options: { include_usage: true },
})

/** What has arrived so far: the caller can stop the answer and keep it. */
class AnswerSoFar {
  text = ""
  reasoning = ""
  finishReason: string | undefined
  usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined
  receiptId: string | undefined
  failure: string | undefined
  firstTokenMs: number | undefined
  readonly #startedMs: number
  readonly #nowMs: () => number
  readonly #listener: AnswerListener

  constructor(listener: AnswerListener, nowMs: () => number) {
    this.#listener = listener
    this.#nowMs = nowMs
    this.#startedMs = nowMs()
  }

  onEvent(json: string): void {
    const event = decodeEvent(json)
    // A server that is not edgewise may add fields to events; one that cannot be read at all is left out.
    if (event._tag === "None") return
    if ("error" in event.value) {
      this.failure ??= event.value.error.message
      return
    }
    const { choices, usage } = event.value
    this.usage = usage ?? this.usage
    for (const { delta, finish_reason } of choices) {
      this.finishReason = finish_reason ?? this.finishReason
      this.#add(delta.reasoning_content ?? "", delta.content ?? "")
    }
  }

  #add(reasoning: string, text: string): void {
    if (reasoning === "" && text === "") return
    this.firstTokenMs ??= this.#nowMs() - this.#startedMs
    this.reasoning += reasoning
    this.text += text
    if (reasoning !== "") this.#listener.onReasoning(reasoning)
    if (text !== "") this.#listener.onText(text)
  }

  get answer(): Answer {
    const { finishReason, firstTokenMs, reasoning, receiptId, text, usage } = this
    return {
      text,
      reasoning,
      totalMs: this.#nowMs() - this.#startedMs,
      ...(finishReason === undefined ? {} : { finishReason }),
      ...(firstTokenMs === undefined ? {} : { firstTokenMs }),
      ...(receiptId === undefined ? {} : { receiptId }),
      ...(usage === undefined
        ? {}
        : { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens }),
    }
  }
}

/** Runs one answer. Interrupting it ends the request; `soFar` then has what arrived. */
export const stream = Effect.fnUntraced(function* (
  access: NodeAccess,
  options: ChatOptions,
  messages: ReadonlyArray<Message>,
  soFar: AnswerSoFar,
) {
  const incoming = yield* postJson(access, "/v1/chat/completions", bodyOf(options, messages))
  const receipt = incoming.headers["x-receipt-id"]
  soFar.receiptId = typeof receipt === "string" ? receipt : undefined
  yield* eachEvent(incoming, (json) => soFar.onEvent(json))
  if (soFar.failure !== undefined) return yield* localFailure(soFar.failure)
}, Effect.scoped)

export const answerSoFar = (listener: AnswerListener) =>
  Effect.map(Clock.Clock, (clock) => new AnswerSoFar(listener, () => clock.currentTimeMillisUnsafe()))
