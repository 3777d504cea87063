// POST /v1/auth/session: an API key becomes a session token. Request, response, handler.
import { Clock, Context, Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import { NewId } from "#http/Ids.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { SigningKeys } from "#store/signing/SigningKeys.ts"
import { AuthFailures } from "./AuthFailures.ts"
import { DevelopmentKeyCheck } from "./DevelopmentKey.ts"
import { RateLimit } from "./RateLimit.ts"
import { claimsOf, signSession } from "./SessionToken.ts"

/** One hour (protocol 17.4). */
const defaultSessionSeconds = 3_600

export const SessionSeconds = Context.Reference<number>("edgewise/api/SessionSeconds", {
  defaultValue: () => defaultSessionSeconds,
})

/** Failures that an address may have at once, and per minute. A guess: a person who mistypes has a few, a script a thousand. */
export const sessionFailuresAMinute = 30

const bearerOf = (request: HttpServerRequest.HttpServerRequest): string => {
  const header = request.headers.authorization ?? ""
  return /^bearer /i.test(header) ? header.slice("bearer ".length).trim() : ""
}

const missing = Effect.fail(new Unauthorized({ reason: "missing" }))

/** The principal of the request's key. A wrong key is 401, or 429 beyond the limit of its address. */
const principalOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const accounts = yield* Accounts
  const notes = yield* CurrentRequest
  const credential = bearerOf(request)
  const authenticated =
    credential === ""
      ? missing
      : Effect.flatMap(accounts.authenticate(credential), yield* DevelopmentKeyCheck)
  return yield* (yield* AuthFailures)
    .guard(authenticated)
    .pipe(Effect.ensuring(Effect.sync(() => notes.authenticated())))
})

/** The body is not read: the request has no parameters. */
export const createSession = Effect.gen(function* () {
  const principal = yield* principalOf(yield* HttpServerRequest.HttpServerRequest)
  yield* (yield* RateLimit).admit(principal.userId)
  const session = Effect.gen(function* () {
    const lifetimeSeconds = yield* SessionSeconds
    const jti = (yield* NewId)()
    const nowMs = yield* Clock.currentTimeMillis
    const claims = claimsOf({ principal, jti, nowMs, lifetimeSeconds })
    // Signing keys that cannot be read are not the caller's fault: 503.
    const signer = yield* Effect.orDie((yield* SigningKeys).signer)
    return { token: yield* signSession(claims, signer), claims }
  })
  const { claims, token } = yield* (yield* Drain).admit(session)
  return {
    session_token: token,
    token_type: "Bearer" as const,
    expires_in: claims.exp - claims.iat,
    expires_at: claims.exp,
  }
})
