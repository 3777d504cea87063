// Requests a user may make on this node: the specification's 100 in any rolling minute, whatever key or session.
import { Clock, Context, Effect, Layer } from "effect"
import { RateLimited } from "#domain/Errors.ts"
import { monotonicMsOf } from "#domain/Monotonic.ts"
import { RateWindow } from "#domain/RateWindow.ts"
import { CurrentNotes } from "./RequestNotes.ts"

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
      const window = new RateWindow({ limit: perMinute })
      return RateLimit.of({
        admit: (userId) =>
          perMinute === 0
            ? Effect.void
            : Effect.withFiber((fiber) => {
                const admission = window.admit(userId, monotonicMsOf(fiber.getRef(Clock.Clock)))
                fiber.getRef(CurrentNotes).rate = { ...admission, limit: perMinute }
                const { admitted, retryAfterMs } = admission
                return admitted ? Effect.void : Effect.fail(new RateLimited({ retryAfterMs }))
              }),
      })
    })
}
