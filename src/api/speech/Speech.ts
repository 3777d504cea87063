// POST /v1/audio/speech and GET /v1/audio/voices: request, rules, handlers.
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { speechTextWithin } from "#domain/language/StripMarkdown.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { InputTooLong, InvalidRequest, ModelNotLoaded, SynthesisFailed } from "#domain/wire/Errors.ts"
import { formatOf, SpeechRequest } from "#domain/wire/Speech.ts"
import { Caller } from "#services/Caller.ts"
import { findModel, voiceAliasesOf, voicesOf } from "#services/ModelLookup.ts"
import { reserveFor } from "#services/ModelRun.ts"
import { beginSynthesis, speechAtMost } from "#services/Synthesis.ts"
import { readJson } from "../http/JsonBody.ts"
import { batchReply, streamReply } from "./SpeechReply.ts"
import { clonedVoice } from "./Voice.ts"

const readRequest = readJson(SpeechRequest)

/** A deployed model that speaks. */
const speechModel = (id: string): Effect.Effect<ModelEntry, InvalidRequest | ModelNotLoaded, ModelRegistry> =>
  Effect.gen(function* () {
    const view = yield* findModel(id)
    if (view === undefined) return yield* new ModelNotLoaded({ model: id })
    if (view.entry.kind !== "speech") {
      return yield* new InvalidRequest({ field: "model", problem: `${id} does not speak` })
    }
    return view.entry
  })

/** Rules that join fields, in the order of protocol 8.9. */
const checked = (request: SpeechRequest, entry: ModelEntry) =>
  Effect.gen(function* () {
    const stream = request.stream === true
    const speed = request.speed ?? 1
    const asked = formatOf(request.response_format ?? "pcm", stream)
    if ("problem" in asked) {
      return yield* new InvalidRequest({ field: "response_format", problem: asked.problem })
    }
    const { cloning, languages, maxCharacters } = entry.speech ?? defaultLimits
    if (cloning && stream && speed !== 1) {
      return yield* new InvalidRequest({ field: "speed", problem: `must be 1.0 when ${entry.id} streams` })
    }
    const language = (cloning ? request.language : undefined) ?? languages[0] ?? "en"
    if (!languages.includes(language)) {
      return yield* new InvalidRequest({
        field: "language",
        problem: `must be one of ${languages.join(", ")}`,
      })
    }
    const text = speechTextWithin(request.input, maxCharacters)
    if (text === undefined) return yield* new InputTooLong({ model: entry.id, maxCharacters })
    if (text === "") return yield* new InvalidRequest({ field: "input", problem: "has nothing to speak" })
    return { cloning, format: asked.format, language, speed, stream, text }
  })

/** Of a speech model whose catalog entry says nothing about speech: the larger limit of protocol 8.3. */
const defaultLimits = { maxCharacters: 4096, cloning: false, languages: ["en"] }

/** Longer than any preset's name: such a voice is not worth an engine's time. */
const maxPresetCharacters = 256

/** A preset by its name. The engine alone knows whether the model has it, until it has loaded and lists its voices. */
const presetVoice = (entry: ModelEntry, preset: string) =>
  Effect.flatMap(ModelRegistry, (registry) => {
    const isLoaded = registry.find(entry.id)?.host?.facts !== undefined
    const voices = voicesOf(registry, entry)
    return preset.length > maxPresetCharacters || (isLoaded && !voices.includes(preset))
      ? Effect.fail(new SynthesisFailed({ model: entry.id, detail: "unknown voice", voices }))
      : Effect.succeed({ preset })
  })

export const speech = Effect.fn("Speech.create")(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
) {
  const body = yield* readRequest(httpRequest)
  const entry = yield* speechModel(body.model)
  const { cloning, format, language, speed, stream, text } = yield* checked(body, entry)
  // Before the voice: whoever cannot pay does not make this node fetch and decode clips.
  const reservation = yield* reserveFor(yield* Caller, entry, speechAtMost(text, speed))
  const name = (yield* voiceAliasesOf(entry)).get(body.voice) ?? body.voice
  const voice = cloning ? yield* clonedVoice({ ...body, voice: name }) : yield* presetVoice(entry, name)
  const priority = stream ? "stream" : "batch"
  const request = { text, voice, language, speed, priority } as const
  const synthesis = yield* beginSynthesis({ entry, request, reservation })
  return stream
    ? yield* streamReply(entry.id, synthesis, format)
    : yield* batchReply(entry.id, synthesis, format)
})

export const voices = Effect.fn("Speech.voices")(function* ({ model = "" }: { readonly model?: string }) {
  if (model === "") return yield* new InvalidRequest({ field: "model", problem: "is required" })
  const entry = yield* speechModel(model)
  const { cloning, languages } = entry.speech ?? defaultLimits
  return {
    model: entry.id,
    voices: entry.speech?.voices ?? [],
    aliases: Object.fromEntries(yield* voiceAliasesOf(entry)),
    cloning,
    languages,
  }
})
