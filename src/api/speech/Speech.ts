// POST /v1/audio/speech and GET /v1/audio/voices: request, rules, handlers.
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { speechTextWithin } from "#domain/language/StripMarkdown.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { isMixture, languageOfVoice, mixtureOf } from "#domain/models/PresetVoices.ts"
import { InputTooLong, InvalidRequest, NotInstalled, SynthesisFailed } from "#domain/wire/Errors.ts"
import { formatOf, isStreamed, SpeechRequest } from "#domain/wire/Speech.ts"
import { Caller } from "#services/Caller.ts"
import { findModel, voiceAliasesOf, voicesOf } from "#services/ModelLookup.ts"
import { reserveFor } from "#services/ModelRun.ts"
import { beginSynthesis, speechAtMost } from "#services/Synthesis.ts"
import { missingFrontEnd } from "#weights/FrontEnd.ts"
import { readJson } from "../http/JsonBody.ts"
import { batchReply, eventReply, streamReply } from "./SpeechReply.ts"
import { clonedVoice } from "./Voice.ts"

const readRequest = readJson(SpeechRequest)

/**
 * The language of a request. Cloning models speak the one that is asked for. A preset speaks its own, which `language` may repeat; a model of
 * one language ignores the field (protocol 8.1).
 */
const languageOf = ({ language }: SpeechRequest, entry: ModelEntry, voice: string) => {
  const { cloning, languages } = entry.speech ?? defaultLimits
  const refused = (problem: string) => Effect.fail(new InvalidRequest({ field: "language", problem }))
  if (cloning) {
    const asked = language ?? languages[0] ?? "en"
    return languages.includes(asked)
      ? Effect.succeed(asked)
      : refused(`must be one of ${languages.join(", ")}`)
  }
  const named = voice.length > maxPresetCharacters ? undefined : languageOfVoice(voice)
  const own = named ?? languages[0] ?? "en"
  const isIgnored = language === undefined || language === null || languages.length < 2
  return isIgnored || language === own
    ? Effect.succeed(own)
    : refused(named === undefined ? `must be ${own}` : `must be ${own}, the language of ${voice}`)
}

/** Rules that join fields, in the order of protocol 8.9. `voice`: an alias has been replaced. */
const checked = (request: SpeechRequest, entry: ModelEntry, voice: string) =>
  Effect.gen(function* () {
    const events = request.stream_format === "sse"
    const words = (request.timestamp_granularities ?? []).includes("word")
    if (words && !events) {
      const problem = "needs stream_format sse"
      return yield* new InvalidRequest({ field: "timestamp_granularities", problem })
    }
    const speed = request.speed ?? 1
    const asked = formatOf(request.response_format ?? "pcm", request.stream === true, events)
    if ("problem" in asked) {
      return yield* new InvalidRequest({ field: "response_format", problem: asked.problem })
    }
    const stream = events ? isStreamed(asked.format) : request.stream === true
    const { cloning, maxCharacters } = entry.speech ?? defaultLimits
    if (cloning && stream && speed !== 1) {
      return yield* new InvalidRequest({ field: "speed", problem: `must be 1.0 when ${entry.id} streams` })
    }
    const language = yield* languageOf(request, entry, voice)
    const lacked = missingFrontEnd(entry, language)
    if (lacked !== undefined) {
      const part = `the text front end for ${language} (npm package ${lacked})`
      return yield* new NotInstalled({ model: entry.id, part })
    }
    const text = speechTextWithin(request.input, maxCharacters)
    if (text === undefined) return yield* new InputTooLong({ model: entry.id, maxCharacters })
    if (text === "") return yield* new InvalidRequest({ field: "input", problem: "has nothing to speak" })
    return { cloning, events, format: asked.format, language, speed, stream, text, words }
  })

/** Of a speech model whose catalog entry says nothing about speech: the larger limit of protocol 8.3. */
const defaultLimits = { maxCharacters: 4096, cloning: false, languages: ["en"] }

/** Longer than any preset's name: such a voice is refused before it reaches the engine. */
const maxPresetCharacters = 256

/**
 * A preset by its name, or several as a mixture. Before the model has loaded and its voices are known, only the engine can refuse a name.
 * @param aliases other name → voice
 */
const presetVoice = Effect.fnUntraced(function* (
  model: ModelHandle<"speech">,
  asked: string,
  aliases: ReadonlyMap<string, string>,
) {
  const { id } = model.entry
  const voices = voicesOf(model)
  const isLoaded = model.facts() !== undefined
  const known = (name: string): string | undefined => {
    const voice = aliases.get(name) ?? name
    return isLoaded && !voices.includes(voice) ? undefined : voice
  }
  const isName = asked.length <= maxPresetCharacters
  if (isName && isMixture(asked) && !voices.includes(asked)) {
    const mixture = mixtureOf(asked, known)
    if ("problem" in mixture) return yield* new InvalidRequest({ field: "voice", problem: mixture.problem })
    const parts = mixture.voices.map(({ voice, weight }) => `${voice}(${weight.toFixed(9)})`)
    return { preset: parts.join("+") }
  }
  const preset = isName ? known(asked) : undefined
  if (preset !== undefined) return { preset }
  return yield* new SynthesisFailed({ model: id, detail: "unknown voice", voices })
})

export const speech = Effect.fn("Speech.create")(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
) {
  const body = yield* readRequest(httpRequest)
  const model = yield* findModel(body.model, "speech")
  const { entry } = model
  const aliases = yield* voiceAliasesOf(model)
  const name = aliases.get(body.voice) ?? body.voice
  const { cloning, events, format, language, speed, stream, text, words } = yield* checked(body, entry, name)
  // Before the voice: the node fetches and decodes clips only for a caller who can pay.
  const reservation = yield* reserveFor(yield* Caller, entry, speechAtMost(text, speed))
  const voice = cloning
    ? yield* clonedVoice({ ...body, voice: name })
    : yield* presetVoice(model, name, aliases)
  const priority = stream ? "stream" : "batch"
  const request = { text, voice, language, speed, priority } as const
  const synthesis = yield* beginSynthesis({ model, request, reservation })
  if (events) return yield* eventReply(entry.id, synthesis, format, words ? body.input : undefined)
  return stream
    ? yield* streamReply(entry.id, synthesis, format)
    : yield* batchReply(entry.id, synthesis, format)
})

export const voices = Effect.fn("Speech.voices")(function* (query: { readonly model?: string }) {
  const { model: id = "" } = query
  if (id === "") return yield* new InvalidRequest({ field: "model", problem: "is required" })
  const model = yield* findModel(id, "speech")
  const { entry } = model
  const { cloning, languages } = entry.speech ?? defaultLimits
  return {
    model: entry.id,
    voices: entry.speech?.voices ?? [],
    aliases: Object.fromEntries(yield* voiceAliasesOf(model)),
    cloning,
    languages,
  }
})
