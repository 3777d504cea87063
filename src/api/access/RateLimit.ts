// Requests a user may make on this node in any 60 seconds, whatever key or session, and those of each client secret, which are counted
// apart (protocol 4.1).
import { Clock, Context, Effect, Layer } from "effect"
import { type Admission, SlidingWindowLimiter } from "#domain/access/SlidingWindowLimiter.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { RateLimited } from "#domain/wire/Errors.ts"
import { CurrentRequest } from "#http/RequestContext.ts"

/** The secrets of a user may together make this many times the requests of one. A guess: a page with ten busy visitors. */
export const secretsOfUser = 10

export class RateLimit extends Context.Service<
  RateLimit,
  {
    /** Counts a request; what is left goes into the head of its answer. */
    readonly admit: (userId: string) => Effect.Effect<void, RateLimited>
    /** Counts what is done with a client secret of the user, which leaves the rate of the user's keys as it is. */
    readonly admitSecret: (secretId: string, userId: string) => Effect.Effect<void, RateLimited>
  }
>()("edgewise/api/RateLimit") {
  /** `perMinute` 0 turns the limit off. */
  static readonly layer = (perMinute: number) =>
    Layer.sync(RateLimit, () => {
      /** By user and by secret: the ids of the two differ in their form. */
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
