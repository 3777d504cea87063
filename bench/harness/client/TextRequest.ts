// A streamed chat request: what is sent, and what the times of the reply's pieces say. Understands the variants of stock
// servers: a first chunk with the role only, empty deltas, reasoning in a field of its own, tool calls, a last chunk with
// `usage` and without choices, errors inside the stream, and a whole JSON reply although a stream was asked for.
import { EventStream, objectOf } from "./EventStream.ts"
import { exchange, type Target } from "./Exchange.ts"
import { detailOf, oneLine, RequestFailed } from "./Failures.ts"
import type { Measured } from "./Outcome.ts"

interface ChatAsk {
  readonly model: string
  readonly prompt: string
  readonly maxTokens: number
  readonly temperature: number
  /** Whether `stream_options` is sent, which some servers refuse. */
  readonly usage: boolean
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>
}

type Json = Readonly<Record<string, unknown>>

const asObject = (value: unknown): Json =>
  typeof value === "object" && value !== null ? (value as Json) : {}

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const isText = (value: unknown): boolean => typeof value === "string" && value !== ""

/** Fields of a delta that hold text, by the names that servers use. */
const textFields = ["content", "reasoning_content", "reasoning", "refusal"]

/** True if a chunk's choice holds some of the reply: text, reasoning or a part of a tool call. */
const hasContent = (choice: Json): boolean => {
  const delta = asObject(choice.delta ?? choice.message)
  return (
    textFields.some((field) => isText(delta[field])) ||
    listOf(delta.tool_calls).length > 0 ||
    // The older text completions.
    isText(choice.text)
  )
}

const countIn = (usage: unknown, field: string): number | undefined => {
  const value = asObject(usage)[field]
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? value : undefined
}

/** Pieces of a reply that are kept, at most; a reply of more counts as endless. */
const mostPieces = 200_000
/** Characters of a whole JSON reply, at most. */
const mostJson = 16 * 2 ** 20

/** Reads one reply. */
export class ChatReply {
  /** Arrival of each piece. */
  readonly pieces: Array<number> = []
  readonly #onPiece: (atMs: number) => void
  #usage: unknown
  #finished = false

  constructor(onPiece: (atMs: number) => void = () => {}) {
    this.#onPiece = onPiece
  }

  get promptTokens(): number | undefined {
    return countIn(this.#usage, "prompt_tokens")
  }

  get completionTokens(): number | undefined {
    return countIn(this.#usage, "completion_tokens")
  }

  /** @throws RequestFailed for an error event */
  event(data: string, atMs: number): void {
    if (data === "[DONE]") {
      this.#finished = true
      return
    }
    const chunk = objectOf(data)
    if (chunk === undefined) throw new RequestFailed("wrong reply", `an event is not JSON: ${oneLine(data)}`)
    if (chunk.error !== undefined && chunk.error !== null) {
      throw new RequestFailed("error event", detailOf(data))
    }
    this.#usage = chunk.usage ?? this.#usage
    for (const choice of listOf(chunk.choices).map(asObject)) {
      if (hasContent(choice)) {
        if (this.pieces.length >= mostPieces) throw new RequestFailed("too large", "a reply without an end")
        this.pieces.push(atMs)
        this.#onPiece(atMs)
      }
      if (choice.finish_reason !== undefined && choice.finish_reason !== null) this.#finished = true
    }
  }

  /** @throws RequestFailed if it was no whole reply */
  end(): void {
    if (!this.#finished)
      throw new RequestFailed("closed early", "the stream ended without finish_reason or [DONE]")
  }

  /** @throws RequestFailed if it was no whole reply */
  measured(scheduledAtMs: number, endAtMs: number): Measured {
    this.end()
    const first = this.pieces[0]
    const last = this.pieces.at(-1)
    const { promptTokens } = this
    const tokens = this.completionTokens ?? this.pieces.length
    const gaps = this.pieces.slice(1).map((atMs, before) => atMs - this.pieces[before]!)
    return {
      figures: {
        e2e: endAtMs - scheduledAtMs,
        tokens,
        ...(promptTokens === undefined ? {} : { prompt_tokens: promptTokens }),
        ...(first === undefined ? {} : { ttft: first - scheduledAtMs }),
        ...(gaps.length === 0 ? {} : { gap: gaps.reduce((most, gap) => Math.max(most, gap), 0) }),
        ...(gaps.length === 0 || tokens < 2 ? {} : { tpot: (last! - first!) / (tokens - 1) }),
      },
      pooled: { itl: gaps },
    }
  }
}

/** Sends a request for a stream and reads its whole reply. Returns the time of its end. Fails with RequestFailed. */
export const streamed = async (
  target: Target,
  { path, fields }: { readonly path: string; readonly fields: Json },
  reply: ChatReply,
  signal: AbortSignal,
): Promise<number> => {
  const stream = new EventStream((data, atMs) => reply.event(data, atMs))
  const whole: Array<Buffer> = []
  let wholeBytes = 0
  let isJson = false
  await exchange(
    target,
    { path, type: "application/json", body: JSON.stringify(fields), signal },
    {
      onHead: ({ headers }) => {
        const type = headers["content-type"] ?? ""
        isJson = type.includes("json")
        if (type.includes("html")) throw new RequestFailed("wrong reply", `the reply is ${oneLine(type)}`)
      },
      onChunk: (chunk, atMs) => {
        if (!isJson) return stream.read(chunk, atMs)
        wholeBytes += chunk.length
        if (wholeBytes > mostJson) throw new RequestFailed("too large", "a reply of more than 16 MB")
        whole.push(chunk)
      },
    },
  )
  const endAtMs = performance.now()
  if (isJson) {
    reply.event(Buffer.concat(whole).toString("utf8"), endAtMs)
  } else {
    stream.end(endAtMs)
    if (stream.events === 0) throw new RequestFailed("wrong reply", "the reply has no server-sent events")
  }
  reply.end()
  return endAtMs
}

/** Fails with RequestFailed. */
export const chat = async (
  target: Target,
  ask: ChatAsk,
  scheduledAtMs: number,
  signal: AbortSignal,
): Promise<Measured> => {
  const reply = new ChatReply()
  const fields = {
    model: ask.model,
    messages: [{ role: "user", content: ask.prompt }],
    max_tokens: ask.maxTokens,
    temperature: ask.temperature,
    stream: true,
    ...(ask.usage ? { stream_options: { include_usage: true } } : {}),
    ...ask.fields,
  }
  const endAtMs = await streamed(target, { path: "/v1/chat/completions", fields }, reply, signal)
  return reply.measured(scheduledAtMs, endAtMs)
}
