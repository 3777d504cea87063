// The chunks of a streamed chat reply (protocol 7.3), for event streams and for the completions socket. In an event stream
// plain text goes through the pre-serialised frames of TextStream.
import type {
  DeltaDetail,
  GenerateEnd,
  GenerateFinish,
  GenerateStarted,
  TextPart,
} from "#engines/protocol/Text.ts"
import { type ChatReplyTerms, chatFinish } from "./ChatReply.ts"
import { chatLogprob } from "./Logprobs.ts"
import { finishesOf, type Head, usageOf } from "./TextHead.ts"
import { type Extras, event, type StreamFrames, TextFrame } from "./TextStream.ts"

const object = "chat.completion.chunk"

export class ChatChunks {
  readonly #head: Head
  readonly #terms: ChatReplyTerms
  /** Replies, beside the first, that have been sent something. */
  readonly #begun = new Set<number>()

  constructor(head: Head, terms: ChatReplyTerms) {
    this.#head = head
    this.#terms = terms
  }

  #chunk(index: number, delta: object, finish_reason: string | null = null, more: object = {}) {
    const { created, id, model } = this.#head
    return { id, object, created, model, choices: [{ index, delta, ...more, finish_reason }] }
  }

  /** Plain text of the first reply. `begun`: it has been sent something before. */
  text(content: string, begun: boolean): object {
    return this.#chunk(0, begun ? { content } : { role: "assistant", content })
  }

  /** A delta that is not only text of the only reply. `begun`: the first reply has been sent something. */
  detailed(detail: DeltaDetail, text: string, begun: boolean): ReadonlyArray<object> {
    const { logprobs, part, reply = 0 } = detail
    const chunk = part === undefined ? this.#content(reply, text, logprobs) : this.#part(reply, part, text)
    if (chunk === undefined) return []
    if (reply === 0 ? begun : this.#begun.has(reply)) return [chunk]
    this.#begun.add(reply)
    // OpenAI's first delta has `null` where a reply begins with a call.
    const content = part?.kind === "call" ? null : ""
    return [this.#chunk(reply, { role: "assistant", content }), chunk]
  }

  #content(reply: number, content: string, logprobs: DeltaDetail["logprobs"]): object | undefined {
    if (logprobs !== undefined && this.#terms.logprobs) {
      const tokens = { content: logprobs.map(chatLogprob), refusal: null }
      return this.#chunk(reply, { content }, null, { logprobs: tokens })
    }
    return content === "" ? undefined : this.#chunk(reply, { content })
  }

  #part(reply: number, part: TextPart, text: string): object | undefined {
    const { newCallId, usesFunctions } = this.#terms
    if (part.kind === "call") {
      const called = { name: part.name, arguments: "" }
      const call = { index: part.call, id: newCallId(), type: "function", function: called }
      return this.#chunk(reply, usesFunctions ? { function_call: called } : { tool_calls: [call] })
    }
    if (text === "") return undefined
    if (part.kind === "reasoning") return this.#chunk(reply, { reasoning_content: text })
    const piece = { arguments: text }
    const call = { index: part.call, function: piece }
    return this.#chunk(reply, usesFunctions ? { function_call: piece } : { tool_calls: [call] })
  }

  /** The last chunk of each reply. */
  last(finishes: ReadonlyArray<GenerateFinish>): ReadonlyArray<object> {
    const { system_fingerprint } = this.#head
    return finishes.map((finish, index) => ({
      ...this.#chunk(index, {}, chatFinish(finish, this.#terms.usesFunctions)),
      system_fingerprint,
    }))
  }
}

/** The events of a chat reply. */
export class ChatStream implements StreamFrames {
  readonly first: TextFrame
  readonly next: TextFrame
  readonly #head: Head
  readonly #chunks: ChatChunks
  readonly #extras: Extras
  readonly #started: GenerateStarted

  constructor(head: Head, terms: ChatReplyTerms, extras: Extras, started: GenerateStarted) {
    this.#head = head
    this.#chunks = new ChatChunks(head, terms)
    this.#extras = extras
    this.#started = started
    this.first = new TextFrame((content) => this.#chunks.text(content, false))
    this.next = new TextFrame((content) => this.#chunks.text(content, true))
  }

  detailed(detail: DeltaDetail, text: string, begun: boolean): string {
    return this.#chunks.detailed(detail, text, begun).map(event).join("")
  }

  last(end: GenerateEnd): string {
    const { timing, usage } = this.#extras
    const last = this.#chunks.last(finishesOf(end))
    if (!usage) return last.slice(0, -1).map(event).join("") + event({ ...last.at(-1), ...timing() })
    const { created, id, model } = this.#head
    const tokens = { usage: usageOf(end, this.#started), ...timing() }
    return last.map(event).join("") + event({ id, object, created, model, choices: [], ...tokens })
  }
}
