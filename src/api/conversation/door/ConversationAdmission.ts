// What a conversation takes before its handshake is answered: a lease of the model that hears.
import { Effect, Exit, Scope } from "effect"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import type { SessionLease } from "#actors/live/SessionLease.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import { liveModel } from "../../live/LiveAdmission.ts"
import { type ConversationModels, hearingModel } from "../ConversationModels.ts"

/** A lease of the model that hears, in a scope of its own, so that it can be exchanged. */
export const takeSeat = Effect.fnUntraced(function* (
  models: ConversationModels,
  { tellsLogprobs, transcription }: ConversationSettings,
  org: string,
  outer: Scope.Scope,
  replaces?: SessionLease,
) {
  const { keywords, language, languages, model, prompt } = transcription ?? {}
  const asked = language ?? (languages?.length === 1 ? languages[0] : undefined)
  const entry = yield* liveModel(yield* hearingModel(models, model ?? undefined), asked)
  const scope = yield* Scope.fork(outer)
  const place = yield* (yield* LiveSessions)
    .open({
      model: entry.id,
      org,
      language: asked ?? entry.transcription?.defaultLanguage,
      prompt: prompt ?? "",
      ...(keywords == null || keywords.length === 0 ? {} : { keywords }),
      ...(tellsLogprobs ? { logprobs: true } : {}),
      punctuation: undefined,
      fromScratch: false,
      ...(replaces === undefined ? {} : { replaces }),
    })
    .pipe(
      Scope.provide(scope),
      Effect.onError(() => Scope.close(scope, Exit.void)),
    )
  return { entry, place, leave: Scope.close(scope, Exit.void) }
})
