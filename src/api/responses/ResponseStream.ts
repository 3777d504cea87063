// The events of a streamed Responses reply (protocol 7.14). Each has its name in an `event` line and in its data.
import type { Clock } from "effect"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { DeltaDetail, GenerateEnd, GenerateStarted } from "#engines/protocol/Text.ts"
import { streamError } from "#http/ErrorBody.ts"
import type { StreamFrames, TextOnly } from "../text/TextStream.ts"
import { type Item, type ItemListener, OutputItems, type ReasoningItem } from "./OutputItems.ts"
import {
  itemOf,
  outputText,
  type ResponseRecord,
  reasoningText,
  summaryText,
  usageOf,
} from "./ResponseRecord.ts"

interface ResponseStreamTerms {
  readonly record: ResponseRecord
  /** Thoughts are a summary. */
  readonly summary: boolean
  readonly logprobs: boolean
  readonly newId: () => string
  readonly started: GenerateStarted
  readonly clock: Clock.Clock
  /** The time of each step, if requested. */
  readonly timing: () => object
}

/** Members of an event's data behind its type and number, as JSON without the braces. */
const members = (data: object): string => JSON.stringify(data).slice(1, -1)

export class ResponseStream implements StreamFrames, ItemListener {
  readonly #terms: ResponseStreamTerms
  readonly #output: OutputItems
  #sequence = 0
  /** Events of the delta that is being read. */
  #events = ""
  /** Members of the events of the open item, up to their text; equal in all of them. */
  #place = ""
  readonly opening: string
  readonly first: TextOnly = { of: (text) => this.#plain(text) }
  readonly next: TextOnly = this.first
  /** OpenAI's stream has no `[DONE]`. */
  readonly closing = ""

  constructor(terms: ResponseStreamTerms) {
    this.#terms = terms
    this.#output = new OutputItems(terms.newId, terms.logprobs, this)
    const response = `"response":${terms.record.of({ status: "in_progress", items: [] })}`
    this.opening = this.#event("response.created", response) + this.#event("response.in_progress", response)
  }

  #event(type: string, data: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${data}}\n\n`
  }

  #write(type: string, data: string): void {
    this.#events += this.#event(type, data)
  }

  #taken(): string {
    const events = this.#events
    this.#events = ""
    return events
  }

  #plain(text: string): string {
    this.#output.take({ text, completionTokens: 0 })
    return this.#taken()
  }

  detailed(detail: DeltaDetail, text: string): string {
    this.#output.take({ detail, text, completionTokens: 0 })
    return this.#taken()
  }

  #thoughtsPart(item: ReasoningItem): readonly [name: string, part: string] {
    return this.#terms.summary
      ? ["response.reasoning_summary_part", summaryText(item)]
      : ["response.content_part", reasoningText(item)]
  }

  #thoughtsText(): string {
    return this.#terms.summary ? "response.reasoning_summary_text" : "response.reasoning_text"
  }

  added(item: Item, index: number): void {
    const begun = itemOf(item, { summary: this.#terms.summary, logprobs: false }, false)
    this.#write("response.output_item.added", `"output_index":${index},"item":${begun}`)
    const place = members({ item_id: item.id, output_index: index })
    if (item.kind === "call") {
      this.#place = place
      return
    }
    const isSummary = item.kind === "reasoning" && this.#terms.summary
    this.#place = `${place},${isSummary ? '"summary_index":0' : '"content_index":0'}`
    const [name, part] =
      item.kind === "message" ? ["response.content_part", outputText(item)] : this.#thoughtsPart(item)
    this.#write(`${name}.added`, `${this.#place},"part":${part}`)
  }

  grew(item: Item, _: number, piece: string, logprobs: ReadonlyArray<string>): void {
    const delta = `${this.#place},"delta":${JSON.stringify(piece)}`
    switch (item.kind) {
      case "message":
        return this.#write("response.output_text.delta", `${delta},"logprobs":[${logprobs.join(",")}]`)
      case "reasoning":
        return this.#write(`${this.#thoughtsText()}.delta`, delta)
      case "call":
        return this.#write("response.function_call_arguments.delta", delta)
    }
  }

  /** These events repeat the text but not the log probabilities, which may be megabytes. */
  done(item: Item, index: number): void {
    const text = `${this.#place},"text":${JSON.stringify(item.text)}`
    switch (item.kind) {
      case "message":
        this.#write("response.output_text.done", `${text},"logprobs":[]`)
        this.#write("response.content_part.done", `${this.#place},"part":${outputText(item)}`)
        break
      case "reasoning": {
        const [name, part] = this.#thoughtsPart(item)
        this.#write(`${this.#thoughtsText()}.done`, text)
        this.#write(`${name}.done`, `${this.#place},"part":${part}`)
        break
      }
      case "call": {
        const whole = members({ name: item.name, arguments: item.text })
        this.#write("response.function_call_arguments.done", `${this.#place},${whole}`)
      }
    }
    const done = itemOf(item, { summary: this.#terms.summary, logprobs: false })
    this.#write("response.output_item.done", `"output_index":${index},"item":${done}`)
  }

  last(end: GenerateEnd): string {
    const { clock, record, started, timing } = this.#terms
    this.#output.end(end.finishReason)
    const status = end.finishReason === "length" ? "incomplete" : "completed"
    const response = record.of({
      status,
      completedAt: Math.floor(clock.currentTimeMillisUnsafe() / 1000),
      items: this.#output.items,
      usage: usageOf(end, started),
    })
    const timed = members(timing())
    this.#write(`response.${status}`, `"response":${response}${timed === "" ? "" : `,${timed}`}`)
    return this.#taken()
  }

  failed(error: EdgeError): string {
    const { message, type } = streamError(error)
    const code = type === "server_error" ? "server_error" : "invalid_prompt"
    this.#output.fail()
    this.#write("error", members({ code, message, param: null, error: { message, type } }))
    const { items } = this.#output
    const response = this.#terms.record.of({ status: "failed", items, error: { code, message } })
    this.#write("response.failed", `"response":${response}`)
    return this.#taken()
  }
}
