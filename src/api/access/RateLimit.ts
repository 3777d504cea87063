// Requests a user may make on this node in any 60 seconds, whatever key or session (protocol 4.1).
import { Clock, Context, Effect, Layer } from "effect"
import { SlidingWindowLimiter } from "#domain/access/SlidingWindowLimiter.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { RateLimited } from "#domain/wire/Errors.ts"
import { CurrentRequest } from "#http/RequestContext.ts"

export class RateLimit extends Context.Service<
  RateLimit,
  {
    /** Counts a request; what is left goes into the head of its answer. */
    readonly admit: (userId: string) => Effect.Effect<void, RateLimited>
  }
>()("edgewise/api/RateLimit") {
  /** `perMinute` 0 turns the limit off. */
  static readonly layer = (perMinute: number) =>
    Layer.sync(RateLimit, () => {
      const window = new SlidingWindowLimiter({ limit: perMinute })
      return RateLimit.of({
        admit: (userId) =>
          perMinute === 0
            ? Effect.void
            : Effect.withFiber((fiber) => {
                const admission = window.admit(userId, monotonicMsOf(fiber.getRef(Clock.Clock)))
                fiber.getRef(CurrentRequest).rate = { ...admission, limit: perMinute }
                const { admitted, retryAfterMs } = admission
                return admitted ? Effect.void : Effect.fail(new RateLimited({ retryAfterMs }))
              }),
      })
    })
}
