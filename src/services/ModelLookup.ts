// Which deployed model and voice a request's names mean, aliases included. Called by every endpoint that takes a model; the
// rules and tables are domain/ModelNames.
import { Context, Effect } from "effect"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { ModelSnapshot } from "#actors/model/ModelSnapshot.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { modelNamed, voiceAliases } from "#domain/models/ModelNames.ts"

/** Whether OpenAI's names of models and voices are understood (`EDGEWISE_OPENAI_ALIASES`). */
export const OpenAiNames = Context.Reference<boolean>("edgewise/api/OpenAiNames", {
  defaultValue: () => true,
})

/** The deployed model that a request's `model` means. */
export const findModel = (name: string): Effect.Effect<ModelSnapshot | undefined, never, ModelRegistry> =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const view = registry.find(name)
    if (view !== undefined) return view
    const entries = registry.all().map(({ entry }) => entry)
    const entry = modelNamed(entries, name, yield* OpenAiNames)
    return entry === undefined ? undefined : registry.find(entry.id)
  })

/** A model's voices: as the engine found them once it has loaded, before that as the catalog lists them. */
export const voicesOf = (registry: ModelRegistry["Service"], entry: ModelEntry): ReadonlyArray<string> => {
  const facts = registry.find(entry.id)?.host?.facts
  return facts !== undefined && "voices" in facts ? facts.voices : (entry.speech?.voices ?? [])
}

/** Aliases of a model's voices: alias → voice. */
export const voiceAliasesOf = (
  entry: ModelEntry,
): Effect.Effect<ReadonlyMap<string, string>, never, ModelRegistry> =>
  Effect.gen(function* () {
    if (entry.speech === undefined) return new Map()
    return voiceAliases(entry.speech, voicesOf(yield* ModelRegistry, entry), yield* OpenAiNames)
  })
