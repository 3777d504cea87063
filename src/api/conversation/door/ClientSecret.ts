// POST /v1/realtime/client_secrets: a key becomes a secret for a browser, which opens conversations that begin with the session that
// is bound to it, within its limits. And what a connection with such a secret may do.
import { Clock, Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import {
  ClientSecretRequest,
  maxTermsCharacters,
  SecretTerms,
  secretSeconds,
  unknownField,
} from "#domain/conversation/ClientSecretTerms.ts"
import { sessionObject, withChange } from "#domain/conversation/Settings.ts"
import { InvalidRequest, RateLimited, Unauthorized } from "#domain/wire/Errors.ts"
import { Caller } from "#services/Caller.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { ClientSecrets } from "#store/accounts/ClientSecrets.ts"
import { identifyBy } from "../../access/Authentication.ts"
import { RateLimit } from "../../access/RateLimit.ts"
import { bodyBytes, decodeValue, parseFrame } from "../../http/JsonBody.ts"
import {
  type ConversationModels,
  conversationModels,
  firstSettings,
  presetOf,
} from "../ConversationModels.ts"

/** The terms are bounded below; most of a body is their session. */
const maxBodyBytes = 4 * maxTermsCharacters
const utf8 = new TextDecoder()

const decodeBody = decodeValue(ClientSecretRequest)
const TermsJson = Schema.fromJsonString(SecretTerms)
const decodeTerms = Schema.decodeUnknownOption(TermsJson)

/** The model of a secret whose session names none. */
const defaultModel = "gpt-realtime"

const termsOf = ({ limits, session }: ClientSecretRequest): SecretTerms => {
  const { model, ...change } = session ?? { type: "realtime" as const }
  return { model: model ?? defaultModel, session: change, limits: limits ?? {} }
}

export const createClientSecret = Effect.fn("ClientSecret.create")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  const caller = yield* Caller
  const drain = yield* Drain
  const bytes = yield* bodyBytes(request, maxBodyBytes)
  const body = bytes.length === 0 ? {} : yield* parseFrame(utf8.decode(bytes))
  const unknown = unknownField(body)
  if (unknown !== undefined)
    return yield* new InvalidRequest({ field: unknown, problem: "is not known here" })
  const given = yield* decodeBody(body)
  const terms = termsOf(given)
  const models = yield* conversationModels(terms.model).pipe(
    Effect.mapError((error) =>
      error._tag === "InvalidRequest" && error.field === "model"
        ? new InvalidRequest({ field: "session.model", problem: error.problem })
        : error,
    ),
  )
  const settings = withChange(firstSettings(models), terms.session)
  yield* presetOf(models.speaks, settings.voice)
  const text = JSON.stringify(terms)
  if (text.length > maxTermsCharacters) {
    const problem = `must be at most ${maxTermsCharacters} characters of JSON`
    return yield* new InvalidRequest({ field: "session", problem })
  }
  const nowMs = yield* Clock.currentTimeMillis
  const seconds = given.expires_after?.seconds ?? secretSeconds.default
  // One that is made with a session token does not outlive it.
  const expiresAt = Math.floor(
    Math.min(nowMs + seconds * 1000, caller.expiresAtMs ?? Number.POSITIVE_INFINITY) / 1000,
  )
  const made = yield* drain.admit(
    (yield* ClientSecrets).create({ principal: caller, expiresAtMs: expiresAt * 1000, terms: text }),
  )
  if ("fullUntilMs" in made) {
    return yield* new RateLimited({ retryAfterMs: Math.max(1, made.fullUntilMs - nowMs) })
  }
  const facts = { id: "", model: terms.model, expiresAt: 0 }
  const { expires_at: _, id: __, ...session } = sessionObject(facts, settings)
  const reply = { value: made.value, expires_at: expiresAt, session, limits: terms.limits }
  return yield* HttpServerResponse.json(reply, { headers: { "cache-control": "no-store" } }).pipe(
    Effect.orDie,
  )
})

const refuse = (reason: Unauthorized["reason"]) => Effect.fail(new Unauthorized({ reason }))

/** The caller that a secret stands for, and its terms. The end of a secret does not end its sessions; that of its key does. */
export const identifySecret = Effect.fnUntraced(function* (value: string) {
  const secrets = yield* ClientSecrets
  const accounts = yield* Accounts
  const found = yield* secrets.find(value)
  const nowMs = yield* Clock.currentTimeMillis
  const principal =
    found === undefined
      ? refuse("invalid-secret")
      : nowMs >= found.expiresAtMs
        ? refuse("expired-secret")
        : accounts.principalOf(found.keyId)
  const rate = yield* RateLimit
  // Without a secret there is no principal that could be counted.
  const caller = yield* identifyBy(principal, ({ userId }) => rate.admitSecret(found?.id ?? "", userId))
  // Terms of another version of this program, of which this one understands only a part.
  const terms = Option.getOrUndefined(decodeTerms(found?.terms))
  return terms === undefined || found === undefined
    ? yield* refuse("invalid-secret")
    : { caller, terms, secret: found, admit: rate.admitSecret(found.id, caller.userId) }
})

const isSame = (a: ConversationModels, b: ConversationModels): boolean =>
  a.entry?.id === b.entry?.id && a.writes.entry.id === b.writes.entry.id

/** The models of a connection with a secret. A model in its address must mean the same conversation. */
export const modelsOfSecret = Effect.fnUntraced(function* (terms: SecretTerms, asked: string | null) {
  const models = yield* conversationModels(terms.model)
  if (asked === null || asked === terms.model) return models
  if (!isSame(models, yield* conversationModels(asked))) {
    return yield* new InvalidRequest({
      field: "model",
      problem: `must be ${terms.model}, which the client secret is for`,
    })
  }
  return models
})
