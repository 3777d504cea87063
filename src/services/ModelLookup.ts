// Which deployed model and voice the names in a request mean, aliases included. The rules and tables of the aliases are in
// domain/models/ModelNames.
import { Context, Effect } from "effect"
import { type ModelHandle, wrongKind } from "#actors/model/ModelHandle.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { conversationNamed } from "#domain/conversation/ConversationEntry.ts"
import { modelNamed, voiceAliases } from "#domain/models/ModelNames.ts"
import type { InvalidRequest, ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"
import { Conversations } from "./Conversations.ts"

/** Whether OpenAI's names of models and voices are understood (`EDGEWISE_OPENAI_ALIASES`). */
export const OpenAiNames = Context.Reference<boolean>("edgewise/api/OpenAiNames", {
  defaultValue: () => true,
})

/** The id of the deployed model that a request's `model` means; the name itself if there is none. */
export const modelId = (name: string): Effect.Effect<string, never, ModelRegistry> =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    if (registry.model(name) !== undefined) return name
    const entries = registry.all().map(({ entry }) => entry)
    return modelNamed(entries, name, yield* OpenAiNames)?.id ?? name
  })

/** The deployed model of this kind that a request's `model` means, or the refusal that its caller gets. */
export const findModel = <K extends EngineKind>(
  name: string,
  kind: K,
): Effect.Effect<ModelHandle<K>, InvalidRequest | ModelNotLoaded, ModelRegistry> =>
  Effect.flatMap(ModelRegistry, (registry) =>
    registry.model(name) === undefined ? findByOtherName(name, kind) : registry.get(name, kind, name),
  )

const findByOtherName = Effect.fnUntraced(function* <K extends EngineKind>(name: string, kind: K) {
  const registry = yield* ModelRegistry
  const id = yield* modelId(name)
  const isConversation =
    registry.model(id) === undefined && conversationNamed((yield* Conversations).all, name) !== undefined
  return yield* isConversation ? Effect.fail(wrongKind(name, kind)) : registry.get(id, kind, name)
})

/** A model's voices: those of the engine once it has loaded, before that those of the catalog. */
export const voicesOf = (model: ModelHandle<"speech">): ReadonlyArray<string> =>
  model.facts()?.voices ?? model.entry.speech?.voices ?? []

/** Aliases of a model's voices: alias → voice. */
export const voiceAliasesOf = (model: ModelHandle<"speech">): Effect.Effect<ReadonlyMap<string, string>> =>
  Effect.gen(function* () {
    const { speech } = model.entry
    return speech === undefined ? new Map() : voiceAliases(speech, voicesOf(model), yield* OpenAiNames)
  })
