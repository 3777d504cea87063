// Which models a conversation joins: one that hears, one that writes and one that speaks.
import { Effect } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { isConversationName } from "#domain/models/ModelNames.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { findModel, modelId, OpenAiNames, voiceAliasesOf, voicesOf } from "#services/ModelLookup.ts"

export interface ConversationModels {
  /** The name that the client asked for. */
  readonly asked: string
  readonly writes: ModelHandle<"text">
  readonly speaks: ModelHandle<"speech">
}

/** True if a socket for this model converses: it names a text model, or one of OpenAI's that converse. */
export const converses = (name: string): Effect.Effect<boolean, never, ModelRegistry> =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const id = yield* modelId(name)
    const entry = registry.all().find((one) => one.entry.id === id)?.entry
    if (entry !== undefined) return entry.kind === "text"
    return isConversationName(name) && (yield* OpenAiNames)
  })

export const conversationModels = Effect.fnUntraced(function* (asked: string) {
  const registry = yield* ModelRegistry
  const entries = registry.all().map(({ entry }) => entry)
  const firstText = entries.find(({ kind }) => kind === "text")?.id
  const firstVoice = entries.find(({ kind, speech }) => kind === "speech" && speech?.cloning !== true)?.id
  const isNamed = registry.model(yield* modelId(asked)) !== undefined
  const writes = isNamed ? asked : (firstText ?? asked)
  if (firstVoice === undefined) {
    const problem = "converses only on a node with a model that speaks with preset voices"
    return yield* new InvalidRequest({ field: "model", problem })
  }
  return {
    asked,
    writes: yield* findModel(writes, "text"),
    speaks: yield* findModel(firstVoice, "speech"),
  } satisfies ConversationModels
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

/** The voice that a session begins with. */
export const firstVoice = (model: ModelHandle<"speech">): string => voicesOf(model)[0] ?? "alloy"
