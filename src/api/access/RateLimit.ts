// Limits the requests on this node in any 60 seconds (protocol 4.1). All keys and sessions of a user share one limit. Each client
// secret has its own limit of the same size, and its requests do not count against the user's.
import { Clock, Context, Effect, Layer } from "effect"
import { type Admission, SlidingWindowLimiter } from "#domain/access/SlidingWindowLimiter.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { RateLimited } from "#domain/wire/Errors.ts"
import { CurrentRequest } from "#http/RequestContext.ts"

/** All secrets of a user together may make this many times the requests of one secret. A guess: a page with ten busy visitors. */
export const secretsOfUser = 10

export class RateLimit extends Context.Service<
  RateLimit,
  {
    /** Counts a request. How many requests are left is written into the headers of its answer. */
    readonly admit: (userId: string) => Effect.Effect<void, RateLimited>
    /** Counts a request with a client secret of the user. It does not count against the limit of the user's keys. */
    readonly admitSecret: (secretId: string, userId: string) => Effect.Effect<void, RateLimited>
  }
>()("edgewise/api/RateLimit") {
  /** `perMinute` 0 turns the limit off. */
  static readonly layer = (perMinute: number) =>
    Layer.sync(RateLimit, () => {
      /** One limit for each user and each secret. Ids of users and of secrets differ in form, so one map holds both. */
      const window = new SlidingWindowLimiter({ limit: perMinute })
      const secrets = new SlidingWindowLimiter({ limit: secretsOfUser * perMinute })
      const counted = (admit: (nowMs: number) => Admission): Effect.Effect<void, RateLimited> =>
        perMinute === 0
          ? Effect.void
          : Effect.withFiber((fiber) => {
              const admission = admit(monotonicMsOf(fiber.getRef(Clock.Clock)))
              fiber.getRef(CurrentRequest).rate = { ...admission, limit: perMinute }
              const { admitted, retryAfterMs } = admission
              return admitted ? Effect.void : Effect.fail(new RateLimited({ retryAfterMs }))
            })
      return RateLimit.of({
        admit: (userId) => counted((nowMs) => window.admit(userId, nowMs)),
        admitSecret: (secretId, userId) =>
          counted((nowMs) => {
            const own = window.admit(secretId, nowMs)
            if (!own.admitted) return own
            const all = secrets.admit(userId, nowMs)
            return all.remaining < own.remaining ? all : own
          }),
      })
    })
}
