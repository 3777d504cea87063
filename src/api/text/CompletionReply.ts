// The choices of a text completion: whole (protocol 7.4), and as the chunks of a stream or of the completions socket.
import type { TokenUsage } from "#domain/wire/Chat.ts"
import type { Reader } from "#engines/protocol/Reader.ts"
import type { DeltaDetail, GenerateFinish, TextDelta } from "#engines/protocol/Text.ts"
import { type TokenLists, TokenOffsets } from "./Logprobs.ts"
import type { Head } from "./TextHead.ts"

const object = "text_completion"

/** One streamed chunk; `finish_reason` is null until the last. */
const completionChunk = (
  { created, id, model }: Head,
  text: string,
  finish_reason: string | null,
  index = 0,
  logprobs: TokenLists | null = null,
) => ({
  id,
  object,
  created,
  model,
  choices: [{ text, index, logprobs, finish_reason }],
})

/** The chunks of a reply. */
export class CompletionChunks {
  readonly #head: Head
  readonly #offsets = new TokenOffsets()

  constructor(head: Head) {
    this.#head = head
  }

  /** Plain text of the first reply. */
  text(text: string): object {
    return completionChunk(this.#head, text, null)
  }

  /** A delta that is not only text of the only reply; nothing for one without text and log probabilities. */
  detailed({ logprobs, reply = 0 }: DeltaDetail, text: string): ReadonlyArray<object> {
    if (text === "" && logprobs === undefined) return []
    const lists = logprobs === undefined ? null : this.#offsets.listsOf(reply, logprobs)
    return [completionChunk(this.#head, text, null, reply, lists)]
  }

  /** The last chunk of each reply. */
  last(finishes: ReadonlyArray<GenerateFinish>): ReadonlyArray<object> {
    const { system_fingerprint } = this.#head
    return finishes.map((finish, index) => ({
      ...completionChunk(this.#head, "", finish, index),
      system_fingerprint,
    }))
  }
}

interface Collected {
  text: string
  /** JSON texts of the elements: each delta is serialised when it arrives, because thousands at once would hold the event loop. */
  readonly lists: { readonly [K in keyof TokenLists]: Array<string> }
}

const inner = (list: ReadonlyArray<unknown>): string => JSON.stringify(list).slice(1, -1)

/** Collects the deltas of all replies and writes the record. */
export class CompletionReply implements Reader<TextDelta> {
  readonly #replies: ReadonlyArray<Collected>
  readonly #logprobs: boolean
  readonly #offsets = new TokenOffsets()

  constructor(replies: number, logprobs: boolean) {
    this.#logprobs = logprobs
    this.#replies = Array.from({ length: replies }, () => ({
      text: "",
      lists: { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] },
    }))
  }

  take({ detail, text }: TextDelta): void {
    const index = detail?.reply ?? 0
    const reply = this.#replies[index]
    if (reply === undefined) return
    reply.text += text
    const sampled = detail?.logprobs
    if (!this.#logprobs || sampled === undefined || sampled.length === 0) return
    const lists = this.#offsets.listsOf(index, sampled)
    reply.lists.tokens.push(inner(lists.tokens))
    reply.lists.token_logprobs.push(inner(lists.token_logprobs))
    reply.lists.top_logprobs.push(inner(lists.top_logprobs))
    reply.lists.text_offset.push(inner(lists.text_offset))
  }

  /** The record as JSON text. */
  record(head: Head, finishes: ReadonlyArray<GenerateFinish>, usage: TokenUsage): string {
    const choices = this.#replies.map(({ lists, text }, index) => {
      const logprobs = this.#logprobs
        ? `{${Object.entries(lists)
            .map(([name, parts]) => `"${name}":[${parts.join(",")}]`)
            .join(",")}}`
        : "null"
      const finish = JSON.stringify(finishes[index] ?? "stop")
      return `{"text":${JSON.stringify(text)},"index":${index},"logprobs":${logprobs},"finish_reason":${finish}}`
    })
    const around = JSON.stringify({ ...head, object }).slice(0, -1)
    return `${around},"choices":[${choices.join(",")}],"usage":${JSON.stringify(usage)}}`
  }
}
