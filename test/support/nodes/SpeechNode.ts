// Speech models for a test's catalog, requests to them and checks of replies, with the known samples of the fake engine.
import { Schema } from "effect"
import { pieceSamples, SpeechScript } from "#engines/fake/SpeechScript.ts"
import { type RawResponse, rawRequest, requestBytes } from "../clients/RawHttp.ts"
import { builtInModel } from "./BuiltInModels.ts"
import type { TestModel } from "./TestCatalog.ts"
import { eventually, type TestNode } from "./TestNode.ts"

interface SpeechTestModel extends TestModel {
  readonly speech: Readonly<Record<string, unknown>>
}

export const speechPath = "/v1/audio/speech"

export const fakeVoice: SpeechTestModel = {
  id: "fake-voice",
  kind: "speech",
  adapter: "fake-speech",
  runtime: { load: "start" },
  /** As of `tts-82m`. */
  price: { perMinute: 6_000 },
  speech: { maxCharacters: 4096, voices: ["fake"] },
}

/** A fake cloning model: it accepts reference clips and ignores their sound. */
export const fakeClone: SpeechTestModel = {
  ...fakeVoice,
  id: "fake-clone",
  options: { cloning: true, languages: ["en", "fr"] },
  speech: { maxCharacters: 850, voices: ["default"], cloning: true, languages: ["en", "fr"] },
}

const builtIn = (id: string, options: object): SpeechTestModel =>
  builtInModel(id, { runtime: { load: "start" }, options: { ...options } }) as SpeechTestModel

export const presetModel = builtIn("tts-82m", { slots: 8 })
export const cloneModel = builtIn("tts-3b-ml", { slots: 8 })

/** The same model with the fake engine in place of its weights: tests of names, voices and pages load nothing. */
export const withoutWeights = (model: SpeechTestModel): SpeechTestModel => {
  const { cloning, languages, voices } = model.speech
  const options = cloning === true ? { cloning, languages } : { voices }
  return { ...model, adapter: "fake-speech", files: {}, options }
}

export const languages = cloneModel.speech.languages as ReadonlyArray<string>

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
