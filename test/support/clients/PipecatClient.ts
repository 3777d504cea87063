// The realtime client of pipecat (BSD-2, `services/openai/realtime` at acead05) as a script of our own: the same events in the same
// order, and as strict. It ends at an event that it does not know or cannot decode, and at every error but three. Written from the
// behaviour of the published source; no line of it is copied.
import { Schema } from "effect"
import type { TestNode } from "../nodes/TestNode.ts"
import { SocketClient } from "./SocketClient.ts"

type Frame = Readonly<Record<string, unknown>>

const nullable = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const content = Schema.Struct({
  type: Schema.Literals([
    "text",
    "audio",
    "input_text",
    "input_audio",
    "input_image",
    "output_text",
    "output_audio",
  ]),
  text: nullable(Schema.String),
  transcript: nullable(Schema.String),
})
const item = Schema.Struct({
  id: Schema.String,
  object: nullable(Schema.Literal("realtime.item")),
  type: Schema.Literals(["message", "function_call", "function_call_output"]),
  status: nullable(Schema.Literals(["completed", "in_progress", "incomplete"])),
  role: nullable(Schema.Literals(["user", "assistant", "system"])),
  content: nullable(Schema.Array(content)),
  call_id: nullable(Schema.String),
  name: nullable(Schema.String),
  arguments: nullable(Schema.String),
})
const details = Schema.Struct({
  cached_tokens: nullable(Schema.Int),
  text_tokens: nullable(Schema.Int),
  audio_tokens: nullable(Schema.Int),
})
const response = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("realtime.response"),
  status: Schema.Literals(["completed", "in_progress", "incomplete", "cancelled", "failed"]),
  status_details: Schema.Unknown,
  output: Schema.Array(item),
  usage: nullable(
    Schema.Struct({
      total_tokens: Schema.Int,
      input_tokens: Schema.Int,
      output_tokens: Schema.Int,
      input_token_details: details,
      output_token_details: details,
    }),
  ),
})
const session = Schema.Struct({
  type: nullable(Schema.Literal("realtime")),
  object: nullable(Schema.Literal("realtime.session")),
  output_modalities: nullable(Schema.Array(Schema.Literals(["text", "audio"]))),
  tool_choice: nullable(Schema.Literals(["auto", "none", "required"])),
  max_output_tokens: nullable(Schema.Union([Schema.Int, Schema.Literal("inf")])),
  expires_at: nullable(Schema.Int),
})
const error = Schema.Struct({
  type: Schema.String,
  code: nullable(Schema.String),
  message: Schema.String,
  param: nullable(Schema.String),
  event_id: nullable(Schema.String),
})

const text = Schema.String
const ofItem = { item_id: text, content_index: Schema.Int }
const ofOutput = { response_id: text, output_index: Schema.Int }
const ofPart = { ...ofOutput, ...ofItem }
const ofCall = { ...ofOutput, item_id: text, call_id: text }
const transcription = "conversation.item.input_audio_transcription"

/** Every event that it knows, with the fields that it needs. */
const known: Readonly<Record<string, Schema.Struct.Fields>> = {
  error: { error },
  "session.created": { session },
  "session.updated": { session },
  "conversation.created": {},
  "input_audio_buffer.committed": { item_id: text, previous_item_id: nullable(text) },
  "input_audio_buffer.cleared": {},
  "input_audio_buffer.speech_started": { item_id: text, audio_start_ms: Schema.Int },
  "input_audio_buffer.speech_stopped": { item_id: text, audio_end_ms: Schema.Int },
  "conversation.item.added": { item, previous_item_id: nullable(text) },
  "conversation.item.done": { item, previous_item_id: nullable(text) },
  [`${transcription}.delta`]: { ...ofItem, delta: text },
  [`${transcription}.completed`]: { ...ofItem, transcript: text },
  [`${transcription}.failed`]: { ...ofItem, error },
  "conversation.item.truncated": { ...ofItem, audio_end_ms: Schema.Int },
  "conversation.item.deleted": { item_id: text },
  "conversation.item.retrieved": { item },
  "response.created": { response },
  "response.done": { response },
  "response.output_item.added": { ...ofOutput, item },
  "response.output_item.done": { ...ofOutput, item },
  "response.content_part.added": { ...ofPart, part: content },
  "response.content_part.done": { ...ofPart, part: content },
  "response.output_text.delta": { ...ofPart, delta: text },
  "response.output_text.done": { ...ofPart, text },
  "response.output_audio_transcript.delta": { ...ofPart, delta: text },
  "response.output_audio_transcript.done": { ...ofPart, transcript: text },
  "response.output_audio.delta": { ...ofPart, delta: text },
  "response.output_audio.done": ofPart,
  "response.function_call_arguments.delta": { ...ofCall, delta: text },
  "response.function_call_arguments.done": { ...ofCall, arguments: text },
  "rate_limits.updated": { rate_limits: Schema.Array(Schema.Unknown) },
}

/** Errors that it logs. Each other one ends it. */
const tolerated = ["response_cancel_not_active", "conversation_already_has_active_response"]
const unknownItem = "item_retrieve_invalid_item_id"

interface PipecatTerms {
  readonly instructions: string
  readonly tools: ReadonlyArray<Frame>
  /** Of `audio.input`; `false` is its manual mode, which is sent as null. */
  readonly turnDetection: Frame | false
  /** Runs a function of the model. */
  readonly call: (name: string, args: unknown) => unknown
}

interface CurrentAudio {
  readonly itemId: string
  readonly startMs: number
  bytes: number
}

export class PipecatClient {
  readonly socket: SocketClient
  /** Why it has ended, if it has. */
  fatal: string | undefined
  readonly transcripts: Array<string> = []
  readonly said: Array<string> = []
  readonly done: Array<{ readonly status: string; readonly usage: Frame }> = []
  readonly unknownItems: Array<string> = []
  audioBytes = 0
  readonly #terms: PipecatTerms
  readonly #pending = new Map<string, Frame>()
  #current: CurrentAudio | undefined
  #read = 0
  #count = 0

  private constructor(socket: SocketClient, terms: PipecatTerms) {
    this.socket = socket
    this.#terms = terms
    socket.socket.on("message", () => queueMicrotask(() => this.#readAll()))
    this.#readAll()
  }

  static async open(node: TestNode, terms: PipecatTerms): Promise<PipecatClient> {
    const url = `${node.socketBase}/v1/realtime?model=gpt-realtime`
    return new PipecatClient(
      await SocketClient.open(url, { authorization: `Bearer ${node.keys.dev}` }),
      terms,
    )
  }

  #send(event: Frame): void {
    this.socket.send({ event_id: `pipecat-${++this.#count}`, ...event })
  }

  #readAll(): void {
    for (; this.#read < this.socket.frames.length && this.fatal === undefined; this.#read++) {
      const frame = this.socket.frames[this.#read]!
      try {
        this.#take(frame)
      } catch (cause) {
        this.fatal = `${String(frame.type)}: ${String(cause)}`
      }
    }
  }

  #take(frame: Frame): void {
    const fields = known[String(frame.type)]
    if (fields === undefined) throw new Error("is not implemented")
    Schema.decodeUnknownSync(Schema.Struct({ event_id: text, ...fields }))(frame)
    switch (frame.type) {
      case "session.created":
        return this.#updateSession()
      case "response.output_audio.delta":
        return this.#takeAudio(String(frame.item_id), Buffer.from(String(frame.delta), "base64").length)
      case "response.output_audio_transcript.delta":
      case "response.output_text.delta":
        return void this.said.push(String(frame.delta))
      case "conversation.item.added": {
        const added = frame.item as Frame
        if (added.type === "function_call") this.#pending.set(String(added.call_id), added)
        return
      }
      case "response.function_call_arguments.done":
        return this.#runFunction(String(frame.call_id), String(frame.arguments))
      case `${transcription}.completed`:
        return void this.transcripts.push(String(frame.transcript))
      case "response.done": {
        const { status, usage } = frame.response as { status: string; usage: Frame }
        // It reads them of every answer, also of a cancelled one.
        if (!("input_token_details" in usage) || !("output_token_details" in usage))
          throw new Error("no usage")
        return void this.done.push({ status, usage })
      }
      case "input_audio_buffer.speech_started":
        return this.#truncate()
      case "error":
        return this.#takeError(frame.error as Frame)
    }
  }

  #takeError({ code, event_id, message }: Frame): void {
    if (code === unknownItem) {
      if (typeof event_id !== "string" || !event_id.startsWith("rci_")) throw new Error("is not of a request")
      this.unknownItems.push(event_id.slice("rci_".length))
    } else if (!tolerated.includes(String(code))) throw new Error(String(message))
  }

  #updateSession(): void {
    const { instructions, tools, turnDetection } = this.#terms
    const turn_detection = turnDetection === false ? null : turnDetection
    const format = { type: "audio/pcm", rate: 24_000 }
    const input = { format, transcription: { model: "gpt-4o-transcribe" }, turn_detection }
    const audio = { input, output: { format, voice: "alloy" } }
    const of = { type: "realtime", output_modalities: ["audio"], instructions, audio, tools }
    this.#send({ type: "session.update", session: of })
  }

  #takeAudio(itemId: string, bytes: number): void {
    this.audioBytes += bytes
    if (this.#current?.itemId !== itemId) this.#current = { itemId, startMs: Date.now(), bytes: 0 }
    this.#current.bytes += bytes
  }

  /** Cuts the answer at the shorter of the time since its first audio and the audio that came. */
  #truncate(): void {
    const current = this.#current
    this.#current = undefined
    if (current === undefined) return
    const audio_end_ms = Math.floor(Math.min(Date.now() - current.startMs, current.bytes / 48))
    this.#send({
      type: "conversation.item.truncate",
      item_id: current.itemId,
      content_index: 0,
      audio_end_ms,
    })
  }

  #runFunction(callId: string, args: string): void {
    const pending = this.#pending.get(callId)
    if (pending === undefined) return
    this.#pending.delete(callId)
    const output = JSON.stringify(this.#terms.call(String(pending.name), JSON.parse(args)))
    // At once: the answer that called has not ended yet.
    this.#send({
      type: "conversation.item.create",
      item: { id: `call-${callId}`, type: "function_call_output", call_id: callId, output },
    })
    this.createResponse()
  }

  createResponse(): void {
    this.#send({ type: "response.create", response: { output_modalities: ["audio"] } })
  }

  /** A message of the context, which it adds with an id of its own. */
  addMessage(text_: string): void {
    const id = `message-${++this.#count}`
    const message = { id, type: "message", role: "user", content: [{ type: "input_text", text: text_ }] }
    this.#send({ type: "conversation.item.create", item: message })
  }

  speak(pcm: Buffer): void {
    // Frames of 20 ms.
    for (let at = 0; at < pcm.length; at += 960)
      this.#send({ type: "input_audio_buffer.append", audio: pcm.subarray(at, at + 960).toString("base64") })
  }

  /** The user stops to speak, as its own detector heard it. */
  userStopped(): void {
    this.#send({ type: "input_audio_buffer.commit" })
    this.createResponse()
  }

  /** Its own detector heard the user speak during an answer. */
  interrupt(): void {
    this.#send({ type: "input_audio_buffer.clear" })
    this.#send({ type: "response.cancel" })
    this.#truncate()
  }

  /** The speaker has played all of an answer. */
  botStopped(): void {
    this.#current = undefined
  }

  retrieve(itemId: string): void {
    this.#send({ event_id: `rci_${itemId}`, type: "conversation.item.retrieve", item_id: itemId })
  }

  close(): void {
    this.socket.socket.close()
  }
}
