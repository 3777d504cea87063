// Requests a user may make on this node: the specification's 100 in any rolling minute, whatever key or session.
import { Clock, Context, Effect, Layer } from "effect"
import { RateLimited } from "#domain/Errors.ts"
import { RateWindow } from "#domain/RateWindow.ts"

export class RateLimit extends Context.Service<
  RateLimit,
  { readonly admit: (userId: string) => Effect.Effect<void, RateLimited> }
>()("edgewise/api/RateLimit") {
  /** `perMinute` 0 turns the limit off. */
  static readonly layer = (perMinute: number) =>
    Layer.sync(RateLimit, () => {
      const window = new RateWindow({ limit: perMinute })
      return RateLimit.of({
        admit: (userId) =>
          Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
            const { admitted, retryAfterMs } = window.admit(userId, nowMs)
            return admitted ? Effect.void : Effect.fail(new RateLimited({ retryAfterMs }))
          }),
      })
    })
}
