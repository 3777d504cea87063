// A speech request: raw PCM or WAV, in chunks as they are made, or OpenAI's server-sent events with audio in base64.
import { play } from "../figures/VirtualPlayer.ts"
import { AudioReply } from "./AudioReply.ts"
import { EventStream, objectOf } from "./EventStream.ts"
import { exchange, type Target } from "./Exchange.ts"
import { detailOf, oneLine, RequestFailed } from "./Failures.ts"
import type { Measured } from "./Outcome.ts"

export const speechFormats = ["pcm", "wav"] as const

export interface SpeechAsk {
  readonly model: string
  readonly voice: string
  readonly input: string
  readonly format: (typeof speechFormats)[number]
  /** Of raw PCM, which does not say it. */
  readonly rateHz: number
  /** Audio that the virtual player collects before it starts, milliseconds. */
  readonly playerBufferMs: number
  /** Further fields of the body, such as `stream` or `stream_format`. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** @param reply has what arrived, also if the request fails. Fails with RequestFailed. */
export const speak = async (
  target: Target,
  ask: SpeechAsk,
  scheduledAtMs: number,
  signal: AbortSignal,
  reply = new AudioReply(ask.rateHz, ask.format === "pcm"),
): Promise<Measured> => {
  const events = new EventStream((data, atMs) => {
    const event = objectOf(data)
    if (event === undefined && data === "[DONE]") return
    if (event?.type === "error" || (event?.error !== undefined && event.error !== null)) {
      throw new RequestFailed("error event", detailOf(data))
    }
    const audio = event?.audio ?? event?.delta
    if (typeof audio === "string") reply.read(Buffer.from(audio, "base64"), atMs)
  })
  let isEvents = false
  const sentAtMs = performance.now()
  const body = JSON.stringify({
    model: ask.model,
    voice: ask.voice,
    input: ask.input,
    response_format: ask.format,
    ...ask.fields,
  })
  await exchange(
    target,
    { path: "/v1/audio/speech", type: "application/json", body, signal },
    {
      onHead: ({ headers }) => {
        const type = headers["content-type"] ?? ""
        if (/json|html/.test(type)) throw new RequestFailed("wrong reply", `the reply is ${oneLine(type)}`)
        isEvents = type.includes("event-stream")
      },
      onChunk: (chunk, atMs) => (isEvents ? events.read(chunk, atMs) : reply.read(chunk, atMs)),
    },
  )
  const endAtMs = performance.now()
  if (isEvents) events.end(endAtMs)
  const { audioMs, starvedMs, underruns } = play(reply.deliveries, ask.playerBufferMs)
  if (audioMs === 0 || reply.firstByteMs === undefined)
    throw new RequestFailed("wrong reply", "the reply has no audio")
  return {
    figures: {
      first_byte: reply.firstByteMs - scheduledAtMs,
      ...(reply.firstSoundMs === undefined ? {} : { first_sound: reply.firstSoundMs - scheduledAtMs }),
      e2e: endAtMs - scheduledAtMs,
      underruns,
      starved: starvedMs,
      audio: audioMs / 1000,
      rtf: (endAtMs - sentAtMs) / audioMs,
    },
  }
}
