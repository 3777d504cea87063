// A transcription request: a form with the file, answered by JSON or, with `stream`, by OpenAI's events. The text is
// compared with what the clip says.
import { randomUUID } from "node:crypto"
import type { Clip } from "../data/Clip.ts"
import { wordErrorsOf } from "../figures/WordErrors.ts"
import { EventStream, objectOf } from "./EventStream.ts"
import { exchange, type Target } from "./Exchange.ts"
import { detailOf, oneLine, RequestFailed } from "./Failures.ts"
import type { Measured } from "./Outcome.ts"

interface TranscriptionAsk {
  readonly model: string
  readonly clip: Clip
  readonly language: string | undefined
  readonly stream: boolean
  readonly fields?: Readonly<Record<string, unknown>>
}

/** Characters of a transcript, at most: hours of speech. */
const mostText = 2 * 2 ** 20

const formOf = ({ clip, fields, language, model, stream }: TranscriptionAsk) => {
  const boundary = `edgewise-${randomUUID()}`
  const values: ReadonlyArray<readonly [string, string]> = [
    ["model", model],
    ["response_format", "json"],
    ...(language === undefined ? [] : [["language", language] as const]),
    ...(stream ? [["stream", "true"] as const] : []),
    ...Object.entries(fields ?? {}).map(([name, value]) => [name, String(value)] as const),
  ]
  const field = ([name, value]: readonly [string, string]): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${clip.fileName}"\r\ncontent-type: ${clip.type}\r\n\r\n`
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([
      Buffer.from(values.map(field).join("") + file),
      clip.bytes,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]),
  }
}

/** A runaway transcript, some times as long as the reference, must not make the comparison slow. */
const comparable = (text: string, reference: string): string => text.slice(0, 10 * reference.length + 1_000)

interface Transcribed {
  readonly text: string
  readonly sentAtMs: number
  /** When the first text of a stream came. */
  readonly firstAtMs: number | undefined
  readonly endAtMs: number
}

/** Fails with RequestFailed. */
export const transcriptOf = async (
  target: Target,
  ask: TranscriptionAsk,
  signal: AbortSignal,
): Promise<Transcribed> => {
  let first: number | undefined
  let text = ""
  let done: string | undefined
  let isEvents = false
  const chunks: Array<Buffer> = []
  let bytes = 0
  const events = new EventStream((data, atMs) => {
    const event = objectOf(data)
    if (event === undefined) return
    if (event.type === "error" || (event.error !== undefined && event.error !== null)) {
      throw new RequestFailed("error event", detailOf(data))
    }
    if (typeof event.delta === "string" && event.delta !== "") {
      first ??= atMs
      text += event.delta
      if (text.length > mostText) throw new RequestFailed("too large", "a transcript without an end")
    }
    if (typeof event.text === "string") done = event.text
  })
  const sentAtMs = performance.now()
  await exchange(
    target,
    { path: "/v1/audio/transcriptions", ...formOf(ask), signal },
    {
      onHead: ({ headers }) => {
        isEvents = (headers["content-type"] ?? "").includes("event-stream")
      },
      onChunk: (chunk, atMs) => {
        if (isEvents) return events.read(chunk, atMs)
        bytes += chunk.length
        if (bytes > mostText) throw new RequestFailed("too large", "a transcript without an end")
        chunks.push(chunk)
      },
    },
  )
  const endAtMs = performance.now()
  if (isEvents) {
    events.end(endAtMs)
    if (events.events === 0) throw new RequestFailed("wrong reply", "the reply has no server-sent events")
  } else {
    const body = Buffer.concat(chunks).toString("utf8")
    const found = objectOf(body)?.text
    if (typeof found !== "string") throw new RequestFailed("wrong reply", `no text in: ${oneLine(body)}`)
    done = found
  }
  return { text: done ?? text, sentAtMs, firstAtMs: first, endAtMs }
}

/** Fails with RequestFailed. */
export const transcribe = async (
  target: Target,
  ask: TranscriptionAsk,
  scheduledAtMs: number,
  signal: AbortSignal,
): Promise<Measured> => {
  const transcript = await transcriptOf(target, ask, signal)
  const { endAtMs, firstAtMs, sentAtMs, text: transcribed } = transcript
  const words = wordErrorsOf({ spoken: ask.clip.text, transcribed: comparable(transcribed, ask.clip.text) })
  return {
    figures: {
      ...(firstAtMs === undefined ? {} : { ttft: firstAtMs - scheduledAtMs }),
      e2e: endAtMs - scheduledAtMs,
      final: endAtMs - scheduledAtMs,
      audio: ask.clip.seconds,
      rtf: (endAtMs - sentAtMs) / (1000 * ask.clip.seconds),
      ...(words.words === 0 ? {} : { wer: words.wrong / words.words }),
    },
    ...(words.words === 0 ? {} : { words }),
  }
}
