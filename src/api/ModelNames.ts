// Which deployed model and voice a request's names mean, aliases included. Called by every endpoint that takes a model; the
// rules and tables are domain/ModelNames.
import { Context, Effect } from "effect"
import { ModelRegistry } from "#actors/ModelRegistry.ts"
import type { ModelView } from "#actors/ModelView.ts"
import type { SynthesisFailed } from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import { modelNamed, voiceAliases } from "#domain/ModelNames.ts"
import { nowMs } from "./RequestNotes.ts"

/** Whether OpenAI's names of models and voices are understood (`EDGEWISE_OPENAI_ALIASES`). */
export const OpenAiNames = Context.Reference<boolean>("edgewise/api/OpenAiNames", {
  defaultValue: () => true,
})

/** The deployed model that a request's `model` means. */
export const findModel = (name: string): Effect.Effect<ModelView | undefined, never, ModelRegistry> =>
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

/** At most one line in this time about unknown voices of a node. */
const warnEveryMs = 1_000

/** When the last warning was, and how many were left out since. */
const UnknownVoices = Context.Reference<{ nextMs: number; leftOut: number }>("edgewise/api/UnknownVoices", {
  defaultValue: () => ({ nextMs: 0, leftOut: 0 }),
})

/** Tells the operator of a voice that a model does not have; not which one was asked for, which is the caller's text. */
export const warnOfVoice = ({ model, voices = [] }: SynthesisFailed): Effect.Effect<void> =>
  Effect.gen(function* () {
    const warned = yield* UnknownVoices
    if (nowMs() < warned.nextMs) {
      warned.leftOut++
      return
    }
    const { leftOut } = warned
    warned.nextMs = nowMs() + warnEveryMs
    warned.leftOut = 0
    yield* Effect.logWarning("a request asks for a voice that the model does not have").pipe(
      Effect.annotateLogs({ model, voices: voices.join(", "), leftOut }),
    )
  })
