// Speech models for a test's catalog, requests to them and checks of replies, with the known samples of the fake engine.
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { pieceSamples, SpeechScript } from "#engines/fake/SpeechScript.ts"
import { type RawResponse, rawRequest, requestBytes } from "../clients/RawHttp.ts"
import type { TestModel } from "./TestCatalog.ts"
import { eventually, type TestNode } from "./TestNode.ts"

interface SpeechTestModel extends TestModel {
  readonly speech: Readonly<Record<string, unknown>>
}

export const speechPath = "/v1/audio/speech"

const weights = (name: string) => ({
  source: fileURLToPath(new URL(`kokoro-demo/${name}`, `file://${builtInCatalog}`)),
})

/** The price of `tts-82m`, micro-dollars a minute. */
const speechPrice = { perMinute: 6_000 }

export const fakeVoice: SpeechTestModel = {
  id: "fake-voice",
  kind: "speech",
  adapter: "fake-speech",
  runtime: { load: "start" },
  price: speechPrice,
  speech: { maxCharacters: 4096, voices: ["fake"] },
}

/** A fake cloning model: it accepts reference clips and ignores their sound. */
export const fakeClone: SpeechTestModel = {
  ...fakeVoice,
  id: "fake-clone",
  options: { cloning: true, languages: ["en", "fr"] },
  speech: { maxCharacters: 850, voices: ["default"], cloning: true, languages: ["en", "fr"] },
}

/** The built-in weights under the ids and limits of the built-in catalog. */
export const presetModel: SpeechTestModel = {
  id: "tts-82m",
  kind: "speech",
  adapter: "kokoro-onnx",
  runtime: { load: "start" },
  price: speechPrice,
  files: { model: weights("model.onnx"), tokenizer: weights("tokenizer.json"), voices: weights("voices") },
  options: { slots: 8 },
  speech: {
    maxCharacters: 4096,
    voices: [
      "af_bella",
      "af_sarah",
      "am_adam",
      "am_michael",
      "bf_emma",
      "bf_isabella",
      "bm_george",
      "bm_lewis",
    ],
  },
}

export const languages = ["en", "fr", "de", "es", "it", "pt", "pl", "ja", "ar", "zh"]

export const cloneModel: SpeechTestModel = {
  id: "tts-3b-ml",
  kind: "speech",
  adapter: "style-clone-onnx",
  runtime: { load: "start" },
  price: { perMinute: 9_000 },
  files: {
    model: weights("model.onnx"),
    tokenizer: weights("tokenizer.json"),
    styleEncoder: weights("style_encoder.onnx"),
    defaultVoice: weights("voices/af_bella.bin"),
  },
  options: { slots: 8, training: "english" },
  speech: { maxCharacters: 850, voices: ["default"], cloning: true, languages },
}

/** A text that is a script for the fake speech engine. */
export const spokenScript = (steps: Readonly<Record<string, unknown>>): string =>
  `fake:${JSON.stringify(steps)}`

const decodeScript = Schema.decodeUnknownSync(SpeechScript)

/** All samples of a script that succeeds, and with `pieces` those of its first pieces. */
export const scriptSamples = (
  steps: Readonly<Record<string, unknown>>,
  options: { readonly speed?: number; readonly pieces?: number } = {},
): Buffer => {
  const script = decodeScript(steps)
  const pieces = Array.from({ length: options.pieces ?? script.pieces }, (_, index) =>
    Buffer.from(pieceSamples(script, index, options.speed ?? 1).buffer),
  )
  return Buffer.concat(pieces)
}

export const speechRequestBytes = (node: TestNode, body: unknown, key = node.keys.dev): Buffer =>
  requestBytes(
    "POST",
    speechPath,
    { authorization: `Bearer ${key}`, "content-type": "application/json" },
    typeof body === "string" ? body : JSON.stringify(body),
  )

/** `speak`, again while the node refuses it: a machine that is too busy to keep up with a stream admits none at that moment. */
export const speakWhenAdmitted = async (node: TestNode, body: unknown): Promise<RawResponse> => {
  let reply = await speak(node, body)
  await eventually(async () => {
    if (reply.status !== 503) return true
    reply = await speak(node, body)
    return reply.status !== 503
  }, "the node admits the stream")
  return reply
}

/** One speech request as raw bytes on its own connection. */
export const speak = (node: TestNode, body: unknown, key?: string): Promise<RawResponse> =>
  rawRequest(node.port, speechRequestBytes(node, body, key))
