// Which three models a conversation uses: for transcription, for text and for speech. If the client named a conversation of the catalog, its
// entry names the models. Otherwise the text model is the one that the client named, and for each model that is not named the
// node's first of its kind is used.
import { Effect } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { type ConversationEntry, conversationNamed, earsOf } from "#domain/conversation/ConversationEntry.ts"
import { type ConversationSettings, defaultSettings, withChange } from "#domain/conversation/Settings.ts"
import { isConversationName } from "#domain/models/ModelNames.ts"
import { InvalidRequest, type ModelNotLoaded } from "#domain/wire/Errors.ts"
import { Conversations } from "#services/Conversations.ts"
import { findModel, modelId, OpenAiNames, voiceAliasesOf, voicesOf } from "#services/ModelLookup.ts"

export interface ConversationModels {
  /** The name that the client asked for. */
  readonly asked: string
  readonly writes: ModelHandle<"text">
  readonly speaks: ModelHandle<"speech">
  /** The entry of the catalog; undefined where a text model was asked for, or the catalog has no conversation. */
  readonly entry: ConversationEntry | undefined
}

/** The conversation of the catalog with this name; one of OpenAI's names means the first. */
const entryOf = Effect.fnUntraced(function* (asked: string) {
  const { all } = yield* Conversations
  const named = conversationNamed(all, asked)
  if (named !== undefined) return named
  const isModel = (yield* ModelRegistry).model(yield* modelId(asked)) !== undefined
  return !isModel && isConversationName(asked) && (yield* OpenAiNames) ? all[0] : undefined
})

/** True if a socket for this model converses: it names a conversation, a text model, or one of OpenAI's that converse. */
export const converses = (name: string): Effect.Effect<boolean, never, ModelRegistry> =>
  Effect.gen(function* () {
    if (conversationNamed((yield* Conversations).all, name) !== undefined) return true
    const kind = (yield* ModelRegistry).model(yield* modelId(name))?.kind
    if (kind !== undefined) return kind === "text"
    return isConversationName(name) && (yield* OpenAiNames)
  })

export const conversationModels = (
  asked: string,
): Effect.Effect<ConversationModels, InvalidRequest | ModelNotLoaded, ModelRegistry> =>
  Effect.gen(function* () {
    const entry = yield* entryOf(asked)
    if (entry !== undefined) {
      const { speech, text } = entry.conversation
      const writes = yield* findModel(text, "text")
      return { asked, entry, writes, speaks: yield* findModel(speech, "speech") }
    }
    const registry = yield* ModelRegistry
    const entries = registry.all().map((model) => model.entry)
    const firstText = entries.find(({ kind }) => kind === "text")?.id
    const speaks = entries.find(({ kind, speech }) => kind === "speech" && speech?.cloning !== true)?.id
    const isModel = registry.model(yield* modelId(asked)) !== undefined
    const isOpenAis = !isModel && isConversationName(asked) && (yield* OpenAiNames)
    const writes = isOpenAis ? (firstText ?? asked) : asked
    if (speaks === undefined) {
      const problem = "converses only on a node with a model that speaks with preset voices"
      return yield* new InvalidRequest({ field: "model", problem })
    }
    return {
      asked,
      entry,
      writes: yield* findModel(writes, "text"),
      speaks: yield* findModel(speaks, "speech"),
    }
  })

/** The name of the model that hears; undefined: the node's first. `asked`: that of `transcription.model`. */
export const hearingModel = (
  { entry }: ConversationModels,
  asked: string | undefined,
): Effect.Effect<string | undefined, never, ModelRegistry> =>
  ModelRegistry.useSync((registry) => {
    const hears = entry?.conversation.transcription
    if (hears === undefined) return asked
    return earsOf(
      registry.all().map((model) => model.entry),
      asked,
      hears,
    )
  })

/** The preset that a voice's name means. */
export const presetOf = Effect.fnUntraced(function* (model: ModelHandle<"speech">, voice: string) {
  const preset = (yield* voiceAliasesOf(model)).get(voice) ?? voice
  const voices = voicesOf(model)
  if (voices.includes(preset)) return preset
  return yield* new InvalidRequest({
    field: "session.audio.output.voice",
    problem: `must be one of ${voices.join(", ")}`,
  })
})

/** The session that a client begins with. */
export const firstSettings = ({ entry, speaks }: ConversationModels): ConversationSettings => {
  const { session, voice = voicesOf(speaks)[0] ?? "alloy" } = entry?.conversation ?? {}
  return withChange(defaultSettings(voice), { type: "realtime", ...session })
}
