// Repeats a step of background work until the store works: no caller waits for it, and starting the work again would cost more.
import { Cause, Effect } from "effect"
import { isStoreDefect } from "#store/files/StoreErrors.ts"

/** Pause between two tries. A guess: a full disk, a lock or a database that starts again lasts at least this long. */
export const storeRetryMs = 1_000

/** Runs `step`; if it dies because the store does not work, runs it again. Can be interrupted in between. */
export const untilStoreWorks = <A, E, R>(step: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catchCauseIf(
    step,
    (cause) =>
      cause.reasons.length > 0 &&
      cause.reasons.every((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)),
    () =>
      Effect.andThen(
        Effect.sleep(storeRetryMs),
        Effect.suspend(() => untilStoreWorks(step)),
      ),
  )
