// The models and requests of the chaos suite: the demonstration weights of every kind as catalog entries, and for each kind
// a short request (of a bystander) and a long one (of a victim). No I/O.

import { wavOf } from "#harness/data/Clip.ts"
import { demoFiles as speechFiles } from "../speech/Models.ts"
import { demoWeights } from "../text/Models.ts"
import { demoOptions, demoFiles as earFiles, spokenSamples } from "../transcription/Models.ts"

export const kinds = ["text", "speech", "transcription"] as const
export type Kind = (typeof kinds)[number]

/** Milliseconds after which a silent engine is replaced: short, so that a stopped engine costs little of the bench's time. */
const hangDeadlineMs = 1_000

const sources = (files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).map(([role, source]) => [role, { source }]))

const entry = (kind: Kind, adapter: string, more: Readonly<Record<string, unknown>>) => ({
  id: kind,
  kind,
  adapter,
  ownedBy: "bench",
  created: 1,
  runtime: { load: "start", hangDeadlineMs },
  ...more,
})

export const models = [
  entry("text", "llama-gguf", {
    files: sources({ weights: demoWeights }),
    options: { contextTokens: 8192, slots: 16 },
    price: { inputPerMillionTokens: 200_000, outputPerMillionTokens: 750_000 },
  }),
  entry("speech", "kokoro-onnx", {
    files: sources(speechFiles),
    options: { slots: 8 },
    speech: { maxCharacters: 4_096, voices: ["af_bella"] },
    price: { perMinute: 6_000 },
  }),
  entry("transcription", "whisper-hf-onnx", {
    files: sources(earFiles),
    options: demoOptions,
    price: { perMinute: 4_000 },
  }),
]

export interface Call {
  readonly path: string
  readonly contentType: string
  readonly body: Buffer
}

const json = (path: string, body: unknown): Call => ({
  path,
  contentType: "application/json",
  body: Buffer.from(JSON.stringify(body)),
})

const boundary = "bench"

const upload = (seconds: number): Call => ({
  path: "/v1/audio/transcriptions?model=transcription&sync=true",
  contentType: `multipart/form-data; boundary=${boundary}`,
  body: Buffer.concat([
    Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`),
    wavOf(spokenSamples(seconds), 16_000),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]),
})

const sentence = "The birch canoe slid on the smooth planks. "

const speech = (input: string, stream: boolean): Call =>
  json("/v1/audio/speech", { model: "speech", voice: "af_bella", input, response_format: "pcm", stream })

const text = (max_tokens: number, stream: boolean): Call =>
  json("/v1/completions", {
    model: "text",
    prompt: "Once upon a time there was a fox ",
    temperature: 0.7,
    max_tokens,
    // Keeps the model from ending its text.
    frequency_penalty: -2,
    stream,
  })

/** A few milliseconds to a few tens of work each. */
export const shortCalls: Readonly<Record<Kind, Call>> = {
  text: text(16, false),
  speech: speech(sentence, false),
  transcription: upload(2),
}

/** At least half a second of work each, so that a fault happens during it. */
export const longCalls: Readonly<Record<Kind, Call>> = {
  text: text(4_096, true),
  speech: speech(sentence.repeat(90), true),
  transcription: upload(150),
}

/** The part of a reply that arrived. */
export interface Reply {
  /** 0 if there was no reply. */
  readonly status: number
  /** Whether the body ended by the rules of HTTP. */
  readonly whole: boolean
  /** The end of the body. */
  readonly tail: string
}

/** Whether a reply is one that protocol 3.2 and 3.5 allow for the requests of an engine that died. */
export const isPermittedFailure = (kind: Kind, { status, tail, whole }: Reply): boolean => {
  if (status >= 500) return whole && tail.includes('"detail"')
  if (status !== 200) return false
  if (kind === "speech") return !whole
  return kind === "text" && tail.includes('"error"') && !tail.includes("[DONE]")
}
