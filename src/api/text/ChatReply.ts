// A chat reply that is sent whole: collects the deltas of all replies and writes the record (protocol 7.2).
import { Context } from "effect"
import type { ChatFinish, ChatRequest, TokenUsage } from "#domain/wire/Chat.ts"
import type { Reader } from "#engines/protocol/Reader.ts"
import type { DeltaDetail, GenerateFinish, TextDelta } from "#engines/protocol/Text.ts"
import { NewId } from "#http/Ids.ts"
import type { BegunChat } from "#services/chat/Chat.ts"
import { chatLogprob } from "./Logprobs.ts"
import { type Head, headIn } from "./TextHead.ts"

interface CollectedCall {
  readonly id: string
  readonly name: string
  arguments: string
}

interface Collected {
  content: string
  reasoning: string
  readonly calls: Array<CollectedCall>
  /** JSON texts: each delta is serialised when it arrives, because thousands at once would hold the event loop. */
  readonly logprobs: Array<string>
}

const nothing = (): Collected => ({ content: "", reasoning: "", calls: [], logprobs: [] })

export interface ChatReplyTerms {
  readonly replies: number
  readonly logprobs: boolean
  /** Calls are answered in the older form. */
  readonly usesFunctions: boolean
  readonly newCallId: () => string
}

/** What the reply to a chat that has begun is written with. `context`: of the running fiber. */
export const replyIn = (
  context: Context.Context<never>,
  body: Pick<ChatRequest, "logprobs">,
  { model, request, shape }: Pick<BegunChat, "model" | "request" | "shape">,
): { readonly head: Head; readonly terms: ChatReplyTerms } => {
  const newId = Context.get(context, NewId)
  return {
    head: headIn(context, "chatcmpl", model.entry),
    terms: {
      replies: request.replies ?? 1,
      logprobs: body.logprobs === true,
      usesFunctions: shape.usesFunctions,
      newCallId: () => `call_${newId()}`,
    },
  }
}

/** The finish reason on the wire. */
export const chatFinish = (finish: GenerateFinish, usesFunctions: boolean): typeof ChatFinish.Type =>
  finish === "tool_calls" && usesFunctions ? "function_call" : finish

const messageOf = ({ calls, content, reasoning }: Collected, usesFunctions: boolean) => {
  if (calls.length === 0 && reasoning === "") return { role: "assistant", content }
  const functions = calls.map((call) => ({ name: call.name, arguments: call.arguments }))
  const [first] = functions
  return {
    role: "assistant",
    content: first !== undefined && content === "" ? null : content,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(first === undefined
      ? {}
      : usesFunctions
        ? { function_call: first }
        : {
            tool_calls: calls.map(({ id }, index) => ({ id, type: "function", function: functions[index] })),
          }),
  }
}

export class ChatReply implements Reader<TextDelta> {
  readonly #terms: ChatReplyTerms
  readonly #replies: ReadonlyArray<Collected>

  constructor(terms: ChatReplyTerms) {
    this.#terms = terms
    const replies = [nothing()]
    while (replies.length < terms.replies) replies.push(nothing())
    this.#replies = replies
  }

  take({ detail, text }: TextDelta): void {
    const reply = this.#replies[detail?.reply ?? 0]
    if (reply === undefined) return
    if (detail === undefined) reply.content += text
    else this.#takeDetailed(reply, detail, text)
  }

  #takeDetailed(reply: Collected, { logprobs, part }: DeltaDetail, text: string): void {
    switch (part?.kind) {
      case undefined:
        reply.content += text
        if (logprobs === undefined || !this.#terms.logprobs) return
        for (const sampled of logprobs) reply.logprobs.push(JSON.stringify(chatLogprob(sampled)))
        return
      case "reasoning":
        reply.reasoning += text
        return
      case "call":
        reply.calls[part.call] = { id: this.#terms.newCallId(), name: part.name, arguments: "" }
        return
      case "arguments": {
        const call = reply.calls[part.call]
        if (call !== undefined) call.arguments += text
      }
    }
  }

  /** The record as JSON text. */
  record(head: Head, finishes: ReadonlyArray<GenerateFinish>, usage: TokenUsage): string {
    const { logprobs, usesFunctions } = this.#terms
    if (!logprobs) {
      return JSON.stringify({
        ...head,
        object: "chat.completion",
        choices: this.#replies.map((reply, index) => ({
          index,
          message: messageOf(reply, usesFunctions),
          finish_reason: chatFinish(finishes[index] ?? "stop", usesFunctions),
        })),
        usage,
      })
    }
    const choices = this.#replies.map((reply, index) => {
      const message = JSON.stringify(messageOf(reply, usesFunctions))
      const tokens = `"logprobs":{"content":[${reply.logprobs.join(",")}],"refusal":null},`
      const finish = JSON.stringify(chatFinish(finishes[index] ?? "stop", usesFunctions))
      return `{"index":${index},"message":${message},${tokens}"finish_reason":${finish}}`
    })
    const around = JSON.stringify({ ...head, object: "chat.completion" }).slice(0, -1)
    return `${around},"choices":[${choices.join(",")}],"usage":${JSON.stringify(usage)}}`
  }
}
