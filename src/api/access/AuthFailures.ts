// Limits wrong credentials by address (for IPv6 a /64 network). Beyond the limit each further wrong one is answered 429
// instead of 401. A good credential is never refused: many users share an address behind a proxy or NAT, and a key of
// 192 random bits needs no lock-out. Each listener has its own counts.
import { Context, Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { subscriberOf } from "#domain/access/ClientAddress.ts"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { type AuthUnavailable, RateLimited, type Unauthorized } from "#domain/wire/Errors.ts"
import { clientAddressOf } from "./RequestAddresses.ts"

/** Addresses that are counted: 64 bytes each, with the map's own memory. A guess. */
const maxAddresses = 100_000

type Refused = Unauthorized | AuthUnavailable

export class AuthFailures extends Context.Service<
  AuthFailures,
  {
    /** Runs an authentication; a failure counts against the caller's address, and is `RateLimited` beyond the limit. */
    readonly guard: <A, E extends Refused, R>(
      authenticate: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E | RateLimited, R | HttpServerRequest.HttpServerRequest>
  }
>()("edgewise/api/AuthFailures") {
  /** Failures that an address may have at once, and per minute; 0 is no limit. */
  static readonly layer = (failuresAMinute: number) =>
    Layer.sync(AuthFailures, () =>
      failuresAMinute === 0
        ? AuthFailures.of({ guard: (authenticate) => authenticate })
        : make(failuresAMinute),
    )
}

/** The current request's address, as failures are counted. */
const subscriber = Effect.map(
  Effect.flatMap(HttpServerRequest.HttpServerRequest, clientAddressOf),
  (address) => subscriberOf(address),
)

/** A request without a credential, or with a token or secret that was valid until it expired or was used up, is no attempt to guess one. */
const isGuess = (error: Refused): boolean =>
  error._tag === "Unauthorized" &&
  error.reason !== "missing" &&
  error.reason !== "expired-token" &&
  error.reason !== "expired-secret" &&
  error.reason !== "spent-secret"

const make = (failuresAMinute: number): AuthFailures["Service"] => {
  const forgiveMs = 60_000 / failuresAMinute
  const failures = new GcraLimiter({ burst: failuresAMinute, forgiveMs, maxAddresses })

  /** Counts one wrong credential, or refuses it where its address has sent too many. */
  const wrong = Effect.flatMap(subscriber, (address) =>
    Effect.flatMap(monotonicMs, (nowMs) => {
      const retryAfterMs = failures.waitMs(address, nowMs)
      if (retryAfterMs > 0) return Effect.fail(new RateLimited({ retryAfterMs }))
      failures.failed(address, nowMs)
      return Effect.void
    }),
  )

  return AuthFailures.of({
    guard: (authenticate) => Effect.tapError(authenticate, (error) => (isGuess(error) ? wrong : Effect.void)),
  })
}
