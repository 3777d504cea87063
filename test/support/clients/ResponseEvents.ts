// The event stream of the Responses API for tests: a strict reader, and the rules of order that clients rely on
// (protocol 7.14). Adds the deltas up independently of the product's code.
import { expect } from "vitest"

type Fields = Readonly<Record<string, unknown>>

interface ResponseEvent extends Fields {
  readonly type: string
  readonly sequence_number: number
}

interface Part {
  readonly type: string
  readonly text: string
  readonly logprobs?: ReadonlyArray<unknown>
}
export interface OutputItem {
  readonly id: string
  readonly type: string
  readonly status: string
  readonly content?: ReadonlyArray<Part>
  readonly summary?: ReadonlyArray<Part>
  readonly call_id?: string
  readonly name?: string
  readonly arguments?: string
}
export interface ResponseReply extends Fields {
  readonly id: string
  readonly status: string
  readonly output: ReadonlyArray<OutputItem>
  readonly usage: unknown
}

/** Every event is a line with its name and a line with its data. */
export const responseEvents = (text: string): ReadonlyArray<ResponseEvent> => {
  const blocks = text.split("\n\n")
  expect(blocks.pop()).toBe("")
  return blocks.map((block) => {
    const [, name = "", data = ""] = /^event: ([a-z_.]+)\ndata: ([^\r\n]+)$/.exec(block) ?? []
    const event = JSON.parse(data) as ResponseEvent
    expect(event.type).toBe(name)
    return event
  })
}

/** The events inside an item, as `[type, …]`: what follows what, with the deltas left out. */
const frames: Readonly<Record<string, ReadonlyArray<string>>> = {
  message: ["response.content_part.added", "response.output_text.done", "response.content_part.done"],
  function_call: ["response.function_call_arguments.done"],
  reasoning: ["response.content_part.added", "response.reasoning_text.done", "response.content_part.done"],
  summary: [
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
  ],
}
const deltas: Readonly<Record<string, string>> = {
  message: "response.output_text.delta",
  function_call: "response.function_call_arguments.delta",
  reasoning: "response.reasoning_text.delta",
  summary: "response.reasoning_summary_text.delta",
}

/** The item that the deltas between its first and its last event add up to. */
const itemOf = (events: ReadonlyArray<ResponseEvent>, index: number, summary: boolean): OutputItem => {
  const [added, ...inner] = events
  const done = inner.pop()
  expect([added?.type, done?.type]).toEqual(["response.output_item.added", "response.output_item.done"])
  const first = added?.item as OutputItem
  expect(first.status).toBe("in_progress")
  expect(first.arguments ?? "").toBe("")
  expect([...(first.content ?? []), ...(first.summary ?? [])]).toEqual([])
  const kind = first.type === "reasoning" && summary ? "summary" : first.type
  const isDelta = ({ type }: ResponseEvent) => type === deltas[kind]
  expect(inner.filter((event) => !isDelta(event)).map(({ type }) => type)).toEqual(frames[kind])
  const pieces = inner.filter(isDelta)
  if (kind !== "function_call") {
    expect(inner[0]?.type).toBe(frames[kind]![0])
    expect(inner[0]?.part).toMatchObject({ text: "" })
  }
  for (const event of [added, done, ...inner]) expect(event?.output_index).toBe(index)
  for (const event of inner) expect(event.item_id).toBe(first.id)
  const text = pieces.map(({ delta }) => delta).join("")
  const ended = inner.find(({ type }) =>
    type.endsWith(kind === "function_call" ? "arguments.done" : "text.done"),
  )
  expect(ended).toMatchObject(kind === "function_call" ? { name: first.name, arguments: text } : { text })
  const item = done?.item as OutputItem
  const logprobs = pieces.flatMap((event) => (event.logprobs ?? []) as ReadonlyArray<unknown>)
  const base = { ...first, status: item.status }
  if (kind === "function_call") return { ...base, arguments: text }
  if (kind === "message")
    return { ...base, content: [{ type: "output_text", text, annotations: [], logprobs } as Part] }
  const part = { type: kind === "summary" ? "summary_text" : "reasoning_text", text }
  return kind === "summary" ? { ...base, summary: [part] } : { ...base, content: [part] }
}

const withoutLogprobs = (item: OutputItem): OutputItem =>
  item.type === "message"
    ? { ...item, content: item.content!.map((part) => ({ ...part, logprobs: [] })) }
    : item

/** The final reply of a stream that came to its end. Every rule of order is checked on the way. */
export const addedUp = (events: ReadonlyArray<ResponseEvent>, summary = false): ResponseReply => {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
  const [created, inProgress, ...rest] = events
  const last = rest.pop()
  expect([created?.type, inProgress?.type]).toEqual(["response.created", "response.in_progress"])
  expect(inProgress?.response).toEqual(created?.response)
  expect(created?.response).toMatchObject({ status: "in_progress", output: [], usage: null })
  const reply = last?.response as ResponseReply
  expect(last?.type).toBe(`response.${reply.status}`)
  expect(reply.id).toBe((created?.response as ResponseReply).id)
  const starts = rest.flatMap(({ type }, at) => (type === "response.output_item.added" ? [at] : []))
  if (starts.length > 0) expect(starts[0]).toBe(0)
  else expect(rest).toEqual([])
  const output = starts.map((start, index) => {
    const events = rest.slice(start, starts[index + 1])
    const item = itemOf(events, index, summary)
    expect(events.at(-1)?.item).toEqual(withoutLogprobs(item))
    return item
  })
  expect(reply.output).toEqual(output)
  expect(new Set(output.map(({ id }) => id)).size).toBe(output.length)
  return reply
}
