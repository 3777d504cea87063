// POST /v1/auth/session: an API key becomes a session token. Request, response, handler.
import { Clock, Context, Effect, Layer } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import { subscriberOf } from "#domain/ClientAddress.ts"
import { RateLimited, Unauthorized } from "#domain/Errors.ts"
import { FailedAttempts } from "#domain/FailedAttempts.ts"
import { Accounts } from "#store/Accounts.ts"
import { SigningKeys } from "#store/SigningKeys.ts"
import { callerAddress } from "./CallerAddress.ts"
import { NewId } from "./Ids.ts"
import { RateLimit } from "./RateLimit.ts"
import { claimsOf, signSession } from "./SessionToken.ts"

/** The specification's hour. */
export const defaultSessionSeconds = 3_600

export const SessionSeconds = Context.Reference<number>("edgewise/api/SessionSeconds", {
  defaultValue: () => defaultSessionSeconds,
})

/** Failures an address may have at once, and a minute. A guess: a person who mistypes has a few, a script a thousand. */
const failuresAMinute = 30
/** 64 bytes each, counted with the map's own. A guess. */
const maxAddresses = 100_000

export class AuthFailures extends Context.Service<AuthFailures, FailedAttempts>()(
  "edgewise/api/AuthFailures",
) {
  static readonly layer = Layer.sync(
    AuthFailures,
    () => new FailedAttempts({ burst: failuresAMinute, forgiveMs: 60_000 / failuresAMinute, maxAddresses }),
  )
}

const bearerOf = (request: HttpServerRequest.HttpServerRequest): string => {
  const header = request.headers.authorization ?? ""
  return /^bearer /i.test(header) ? header.slice("bearer ".length).trim() : ""
}

/** The key's principal. Who has failed too often of late is refused unheard, whatever the credential. */
const principalOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const accounts = yield* Accounts
  const failures = yield* AuthFailures
  const nowMs = yield* Clock.currentTimeMillis
  const subscriber = subscriberOf(yield* callerAddress(request))
  const retryAfterMs = failures.waitMs(subscriber, nowMs)
  if (retryAfterMs > 0) return yield* new RateLimited({ retryAfterMs })
  const credential = bearerOf(request)
  const authenticated =
    credential === ""
      ? Effect.fail(new Unauthorized({ reason: "missing" }))
      : accounts.authenticate(credential)
  return yield* Effect.tapError(authenticated, () => Effect.sync(() => failures.failed(subscriber, nowMs)))
})

/** The body is not read: there is nothing to ask for. */
export const createSession = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const principal = yield* principalOf(request)
  yield* (yield* RateLimit).admit(principal.userId)
  const session = Effect.gen(function* () {
    const lifetimeSeconds = yield* SessionSeconds
    const jti = (yield* NewId)()
    const nowMs = yield* Clock.currentTimeMillis
    const claims = claimsOf({ principal, jti, nowMs, lifetimeSeconds })
    // A key file that cannot be read is no fault of the caller's: 500.
    const signer = yield* Effect.orDie((yield* SigningKeys).signer)
    return { token: yield* signSession(claims, signer), claims }
  })
  const { claims, token } = yield* (yield* Drain).admit(session)
  return HttpServerResponse.jsonUnsafe(
    {
      session_token: token,
      token_type: "Bearer",
      expires_in: claims.exp - claims.iat,
      /** Unix time, as `created` elsewhere. */
      expires_at: claims.exp,
    },
    { headers: { "cache-control": "no-store" } },
  )
})
