// Who guesses at credentials: an address (for IPv6 a /64 network) that has failed too often of late is refused unheard,
// whatever it brings. Called by Authentication on an edge and by Sessions on the auth role, each with counts of its own.
import { Context, Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { subscriberOf } from "#domain/ClientAddress.ts"
import { type AuthUnavailable, RateLimited, type Unauthorized } from "#domain/Errors.ts"
import { FailedAttempts } from "#domain/FailedAttempts.ts"
import { monotonicMs } from "#domain/Monotonic.ts"
import { callerAddress } from "./CallerAddress.ts"

/** 64 bytes each, counted with the map's own. A guess. */
const maxAddresses = 100_000

type Refused = Unauthorized | AuthUnavailable

export class AuthFailures extends Context.Service<
  AuthFailures,
  {
    /** Runs an authentication, unless the caller's address has to wait; counts it where the credential is no good. */
    readonly guard: <A, E extends Refused, R>(
      authenticate: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E | RateLimited, R | HttpServerRequest.HttpServerRequest>
  }
>()("edgewise/api/AuthFailures") {
  /** Failures an address may have at once, and a minute; 0 is no limit. */
  static readonly layer = (failuresAMinute: number) =>
    Layer.sync(AuthFailures, () =>
      failuresAMinute === 0
        ? AuthFailures.of({ guard: (authenticate) => authenticate })
        : make(failuresAMinute),
    )
}

/** The current request's address, as failures are counted. */
const subscriber = Effect.map(Effect.flatMap(HttpServerRequest.HttpServerRequest, callerAddress), (address) =>
  subscriberOf(address),
)

/** No credential at all is not a guess at one. */
const isGuess = (error: Refused): boolean => error._tag === "Unauthorized" && error.reason !== "missing"

const make = (failuresAMinute: number): AuthFailures["Service"] => {
  const forgiveMs = 60_000 / failuresAMinute
  const failures = new FailedAttempts({ burst: failuresAMinute, forgiveMs, maxAddresses })

  const note = Effect.flatMap(subscriber, (address) =>
    Effect.map(monotonicMs, (nowMs) => failures.failed(address, nowMs)),
  )
  const admit = Effect.flatMap(subscriber, (address) =>
    Effect.flatMap(monotonicMs, (nowMs) => {
      const retryAfterMs = failures.waitMs(address, nowMs)
      return retryAfterMs > 0 ? Effect.fail(new RateLimited({ retryAfterMs })) : Effect.void
    }),
  )

  return AuthFailures.of({
    guard: (authenticate) => {
      const counted = Effect.tapError(authenticate, (error) => (isGuess(error) ? note : Effect.void))
      return Effect.suspend(() =>
        // Most nodes have nobody to look for most of the time.
        failures.addresses === 0 ? counted : Effect.andThen(admit, counted),
      )
    },
  })
}
