// The `reason` of an effect's failure, or "success" if it does not fail.
import { Effect } from "effect"

export const reason = <A, E extends { readonly reason: string }, R>(
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<E["reason"] | "success", never, R> =>
  Effect.match(effect, { onFailure: (error) => error.reason, onSuccess: () => "success" as const })
