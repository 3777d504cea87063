// The models of the speech suite as catalog entries, and the texts of its requests.
import { fileURLToPath } from "node:url"

const weights = (name: string): string =>
  fileURLToPath(new URL(`../../models/kokoro-demo/${name}`, import.meta.url))

export const demoFiles = {
  model: weights("model.onnx"),
  tokenizer: weights("tokenizer.json"),
  voices: weights("voices"),
}

const entry = (id: string, adapter: string, more: Readonly<Record<string, unknown>>) => ({
  id,
  kind: "speech",
  adapter,
  ownedBy: "bench",
  created: 1,
  files: {},
  runtime: { load: "start" },
  price: { perMinute: 6_000 },
  ...more,
})

/** The real-time factor that the scripted engine reports: at most eight of its streams are admitted. */
export const scriptedFactor = 0.1

/** Kokoro files as a catalog entry. Without `threads` it leaves them to the node's default. */
export const kokoroEntry = (files: Readonly<Record<string, string>>, threads?: number) =>
  entry("demo", "kokoro-onnx", {
    files: Object.fromEntries(Object.entries(files).map(([role, source]) => [role, { source }])),
    options: { slots: 8 },
    speech: { maxCharacters: 4096, voices: ["af_bella"] },
    runtime: { load: "start", ...(threads === undefined ? {} : { threads }) },
  })

/** The demonstration weights as delivered, and the scripted engine, which costs nothing. */
export const models = [
  kokoroEntry(demoFiles),
  entry("scripted", "fake-speech", {
    options: { slots: 64, realTimeFactor: scriptedFactor },
    speech: { maxCharacters: 4096, voices: ["fake"] },
  }),
]

export const speechPath = "/v1/audio/speech"
export const voice = "af_bella"

/** 41 characters: a typical reply of a voice application. */
export const sentence = "The birch canoe slid on the smooth planks"
/** A text of nearly `characters` characters that begins with the sentence. */
export const textOf = (characters: number): string =>
  `${sentence}. `.repeat(Math.max(1, Math.floor(characters / (sentence.length + 2)))).trim()

export type StreamFormat = "pcm" | "opus"

export const spoken = (input: string, response_format: StreamFormat) => ({
  model: "demo",
  voice,
  input,
  response_format,
  stream: true,
})

interface ScriptedSpeech {
  readonly pieces: number
  readonly samples: number
  readonly pieceMs: number
}

export const scripted = (script: ScriptedSpeech, more: Readonly<Record<string, unknown>>) => ({
  model: "scripted",
  voice: "fake",
  input: `fake:${JSON.stringify(script)}`,
  ...more,
})
