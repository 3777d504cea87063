// Who opens a conversation, and what it begins with: a caller with a key, or with a client secret, whose terms are bound to it.
import { Effect } from "effect"
import { looksLikeSecret } from "#domain/access/ClientSecret.ts"
import type { SessionLimits } from "#domain/conversation/ClientSecretTerms.ts"
import type { SessionChange } from "#domain/conversation/Settings.ts"
import type { RateLimited } from "#domain/wire/Errors.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { FoundSecret } from "#store/accounts/ClientSecrets.ts"
import { identify } from "../../access/Authentication.ts"
import { RateLimit } from "../../access/RateLimit.ts"
import { type ConversationModels, conversationModels } from "../ConversationModels.ts"
import { identifySecret, modelsOfSecret } from "./ClientSecret.ts"

export interface Opener {
  readonly caller: Principal
  readonly models: ConversationModels
  /** Changes of the session that it begins with, in their order. */
  readonly session: ReadonlyArray<SessionChange>
  readonly limits: SessionLimits
  /** Counts a turn or an answer as a request. */
  readonly admit: Effect.Effect<void, RateLimited>
  /** Undefined for a key. */
  readonly secret: FoundSecret | undefined
}

/** The caller that the credential stands for, before anything else of the request is read. */
export const identifyOpener = Effect.fnUntraced(function* (credential: string) {
  if (looksLikeSecret(credential)) return yield* identifySecret(credential)
  const caller = yield* identify(credential)
  const admit = (yield* RateLimit).admit(caller.userId)
  return { caller, admit, terms: undefined, secret: undefined }
})

/** `asked`: the model that the client names; null: with a secret its own, otherwise `otherwise`. */
export const openerOf = Effect.fnUntraced(function* (
  { admit, caller, secret, terms }: Effect.Success<ReturnType<typeof identifyOpener>>,
  asked: string | null,
  otherwise: string,
) {
  const models =
    terms === undefined ? yield* conversationModels(asked ?? otherwise) : yield* modelsOfSecret(terms, asked)
  const session = terms === undefined ? [] : [terms.session]
  const opener: Opener = { caller, models, session, limits: terms?.limits ?? {}, admit, secret }
  return opener
})
