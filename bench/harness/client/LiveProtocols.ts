// The two protocols of live transcription: OpenAI's realtime events (`/v1/realtime?intent=transcription`), and edgewise's own
// socket (protocol 10). A value of this module serves one session.
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { atRealtimeRate, listenHz, realtimeHz } from "./RealtimeRate.ts"

/** What a frame of the server means; all absent for a frame that the harness does not need. */
export interface LiveEvent {
  /** The whole caption. */
  readonly caption?: string
  /** The audio that the caption covers. */
  readonly coveredSeconds?: number
  readonly final?: string
  readonly failure?: string
}

interface LiveProtocol {
  /** Path and query of the socket. */
  readonly path: string
  readonly begin: ReadonlyArray<string>
  /** A frame with `count` samples of a clip, from sample `at` on; s16, 16 kHz. */
  readonly audio: (samples: Int16Array, at: number, count: number) => string | Uint8Array
  readonly end: ReadonlyArray<string>
  readonly read: (event: Readonly<Record<string, unknown>>) => LiveEvent
}

interface LiveOptions {
  readonly model: string
  readonly language: string | undefined
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

const messageOf = (event: Readonly<Record<string, unknown>>): string => {
  const { error } = event
  const message = typeof error === "object" && error !== null && "message" in error ? error.message : error
  return text(message) || "the server sent an error event"
}

const edgewise = ({ language, model }: LiveOptions): LiveProtocol => {
  let caption = ""
  const query = new URLSearchParams({ model, ...(language === undefined ? {} : { language }) })
  return {
    path: `/v1/audio/transcriptions/ws?${query}`,
    begin: [],
    audio: (samples, at, count) => s16ToBytes(samples.subarray(at, at + count)),
    end: ['{"type":"stop"}'],
    read: (event) => {
      switch (event.type) {
        case "transcript.text.delta":
          caption = event.op === "append" ? caption + text(event.delta) : text(event.delta)
          return {
            caption,
            ...(typeof event.audio_ms === "number" ? { coveredSeconds: event.audio_ms / 1000 } : {}),
          }
        case "transcript.text.done":
          return { final: text(event.text) }
        case "error":
          return { failure: messageOf(event) }
        default:
          return {}
      }
    },
  }
}

const transcriptionEvents = "conversation.item.input_audio_transcription."

const realtime = ({ language, model }: LiveOptions): LiveProtocol => {
  /** Text so far by item, in the order of their beginning. */
  const items = new Map<string, { text: string; isDone: boolean }>()
  const itemOf = (id: unknown) => {
    const key = text(id)
    const item = items.get(key) ?? { text: "", isDone: false }
    items.set(key, item)
    return item
  }
  const whole = () =>
    [...items.values()]
      .map((item) => item.text)
      .join(" ")
      .trim()
  let isEnding = false
  const query = new URLSearchParams({ intent: "transcription", model })
  const session = {
    type: "transcription",
    audio: {
      input: {
        format: { type: "audio/pcm", rate: realtimeHz },
        transcription: { model, ...(language === undefined ? {} : { language }) },
        // The clip is one item: the harness says when it ends.
        turn_detection: null,
      },
    },
  }
  return {
    path: `/v1/realtime?${query}`,
    begin: [JSON.stringify({ type: "session.update", session })],
    audio: (samples, at, count) => {
      const place = (sample: number) => Math.floor((sample * realtimeHz) / listenHz)
      const bytes = s16ToBytes(atRealtimeRate(samples).subarray(place(at), place(at + count)))
      return JSON.stringify({
        type: "input_audio_buffer.append",
        audio: Buffer.from(bytes).toString("base64"),
      })
    },
    get end() {
      isEnding = true
      return ['{"type":"input_audio_buffer.commit"}']
    },
    read: (event) => {
      const type = text(event.type)
      if (type === "input_audio_buffer.committed") itemOf(event.item_id)
      if (type === "error") return { failure: messageOf(event) }
      if (!type.startsWith(transcriptionEvents)) return {}
      const item = itemOf(event.item_id)
      switch (type.slice(transcriptionEvents.length)) {
        case "delta":
          item.text += text(event.delta)
          return { caption: whole() }
        case "completed":
          item.text = text(event.transcript)
          item.isDone = true
          return isEnding && [...items.values()].every(({ isDone }) => isDone) ? { final: whole() } : {}
        case "failed":
          return { failure: messageOf(event) }
        default:
          return {}
      }
    },
  }
}

const protocols = { realtime, edgewise }

export type LiveProtocolName = keyof typeof protocols

export const liveProtocol = (name: LiveProtocolName, options: LiveOptions): LiveProtocol =>
  protocols[name](options)
