// The JSON texts of a Responses reply and of its items (protocol 7.13). What the request decides is serialised once for
// all events that repeat it.
import type { ResponsesEcho, ResponsesUsage } from "#domain/wire/responses/Reply.ts"
import type { GenerateEnd, GenerateStarted } from "#engines/protocol/Text.ts"
import type { CallItem, Item, MessageItem, ReasoningItem } from "./OutputItems.ts"

interface ResponseHead {
  readonly id: string
  readonly created_at: number
  readonly model: string
}

export const usageOf = (
  { completionTokens, imageTokens = 0, promptTokens, reasoningTokens = 0 }: GenerateEnd,
  { cachedTokens }: GenerateStarted,
): ResponsesUsage => ({
  input_tokens: promptTokens,
  input_tokens_details: {
    cached_tokens: cachedTokens,
    ...(imageTokens === 0 ? {} : { image_tokens: imageTokens }),
  },
  output_tokens: completionTokens,
  output_tokens_details: { reasoning_tokens: reasoningTokens },
  total_tokens: promptTokens + completionTokens,
})

/** The only content part of a message. */
export const outputText = (
  { text }: Pick<MessageItem, "text">,
  logprobs: ReadonlyArray<string> = [],
): string =>
  `{"type":"output_text","text":${JSON.stringify(text)},"annotations":[],"logprobs":[${logprobs.join(",")}]}`

export const reasoningText = ({ text }: Pick<ReasoningItem, "text">): string =>
  JSON.stringify({ type: "reasoning_text", text })
export const summaryText = ({ text }: Pick<ReasoningItem, "text">): string =>
  JSON.stringify({ type: "summary_text", text })

interface ItemOptions {
  /** Thoughts are a summary. */
  readonly summary: boolean
  /** With the log probabilities of texts. */
  readonly logprobs: boolean
}

const callOf = ({ callId, id, name, status, text }: CallItem): string =>
  JSON.stringify({ id, type: "function_call", status, call_id: callId, name, arguments: text })

/** An item as JSON. A message or thoughts that have just begun have no part yet. */
export const itemOf = (item: Item, { logprobs, summary }: ItemOptions, hasBegun = true): string => {
  if (item.kind === "call") return callOf(item)
  const { id, status } = item
  if (item.kind === "message") {
    const part = hasBegun ? outputText(item, logprobs ? item.logprobs : []) : ""
    return `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${part}]}`
  }
  const part = hasBegun ? (summary ? summaryText(item) : reasoningText(item)) : ""
  const [first, second] = summary ? [part, ""] : ["", part]
  return `{"id":"${id}","type":"reasoning","status":"${status}","summary":[${first}],"content":[${second}]}`
}

interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed"
  /** Unix time. */
  readonly completedAt?: number
  readonly items: ReadonlyArray<Item>
  readonly error?: { readonly code: "server_error" | "invalid_prompt"; readonly message: string }
  readonly usage?: ResponsesUsage
}

export class ResponseRecord {
  readonly #head: string
  readonly #echo: string
  readonly #summary: boolean

  constructor({ created_at, id, model }: ResponseHead, echo: ResponsesEcho) {
    this.#head = JSON.stringify({ id, object: "response", created_at, model }).slice(0, -1)
    this.#echo = JSON.stringify(echo).slice(1)
    this.#summary = echo.reasoning.summary !== null
  }

  /** The reply as JSON. */
  of({ completedAt, error, items, status, usage }: ResponseState): string {
    const output = items.map((item) => itemOf(item, { summary: this.#summary, logprobs: true }))
    const state = JSON.stringify({
      status,
      completed_at: completedAt ?? null,
      error: error ?? null,
      incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    })
    const around = `${this.#head},${state.slice(1, -1)},"output":[${output.join(",")}]`
    return `${around},"usage":${JSON.stringify(usage ?? null)},${this.#echo}`
  }
}
