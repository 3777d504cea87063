// Restarts a child that fails, as Erlang's supervisors do: at most `intensity` restarts inside a window that slides,
// with exponential back-off and jitter between them; one more and the supervisor gives up, which is an answer to
// whoever supervises it. Schedules cannot express "N within a sliding window", so this is its own loop.
import { Cause, Effect, Random, Schema } from "effect"
import { monotonicMs } from "#domain/queues/Monotonic.ts"

export class RestartIntensityExceeded extends Schema.TaggedError<RestartIntensityExceeded>()(
  "RestartIntensityExceeded",
  { child: Schema.String, restarts: Schema.Int },
) {}

/** A child specification's restart part. Every value in Tree.ts has its reason beside it. */
export interface RestartPolicy {
  /** Restarts allowed inside `periodMs`; 0 means the first failure is final. */
  readonly intensity: number
  readonly periodMs: number
  /** First pause; doubles with every restart still inside the window. */
  readonly backoffBaseMs: number
  readonly backoffCapMs: number
}

/** Restart times that still count at `nowMs`. Pure. */
export const withinPeriod = (
  restartsAtMs: ReadonlyArray<number>,
  nowMs: number,
  periodMs: number,
): Array<number> => restartsAtMs.filter((at) => nowMs - at < periodMs)

/** The pause before the `nth` restart in the window (1-based), with `jitter` in [0, 1): 50 to 100 % of the step. Pure. */
export const backoffMs = (policy: RestartPolicy, nth: number, jitter: number): number =>
  Math.min(policy.backoffCapMs, policy.backoffBaseMs * 2 ** (nth - 1)) * (0.5 + jitter / 2)

/**
 * Runs `child` until it succeeds, restarting it on failure and defect alike. Interruption passes through.
 * `onRestart` sees each cause and how many restarts the window holds. A failure that does not `count` is followed by a
 * restart all the same, but uses none of those allowed: its cause was dealt with elsewhere.
 */
export const supervise =
  (
    name: string,
    policy: RestartPolicy,
    onRestart: (cause: Cause.Cause<unknown>, nth: number) => Effect.Effect<void>,
    counts: (cause: Cause.Cause<unknown>) => boolean = () => true,
  ) =>
  <A, E, R>(child: Effect.Effect<A, E, R>): Effect.Effect<A, RestartIntensityExceeded, R> =>
    Effect.gen(function* () {
      let restartsAtMs: Array<number> = []
      for (;;) {
        const exit = yield* Effect.exit(child)
        if (exit._tag === "Success") return exit.value
        if (Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.interrupt
        const nowMs = yield* monotonicMs
        restartsAtMs = withinPeriod(restartsAtMs, nowMs, policy.periodMs)
        const counted = counts(exit.cause)
        if (counted && restartsAtMs.length >= policy.intensity) {
          return yield* new RestartIntensityExceeded({ child: name, restarts: restartsAtMs.length })
        }
        if (counted) restartsAtMs.push(nowMs)
        yield* onRestart(exit.cause, restartsAtMs.length)
        yield* Effect.sleep(backoffMs(policy, Math.max(1, restartsAtMs.length), yield* Random.next))
      }
    })
