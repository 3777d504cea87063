// What a request gets that needs the store while it cannot be read or written: 503, and soon another try. Wraps everything
// that a listener serves; a store that fails is a defect to whoever asks it, because nobody else could do anything about it.
import { Cause, Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import { StoreDown } from "#domain/Errors.ts"
import { monotonicMs } from "#domain/Monotonic.ts"
import { isStoreDefect } from "#store/StoreErrors.ts"
import { errorResponse } from "./ErrorBody.ts"

/** A lock is given up, or a database restarted, seldom sooner. A guess. */
const retryAfterMs = 1_000

/** An outage is one piece of news, however many requests meet it. */
const sayEveryMs = 1_000

export const makeStoreOutage = () => {
  let saidAtMs = Number.NEGATIVE_INFINITY

  const say = (cause: Cause.Cause<unknown>) =>
    Effect.flatMap(monotonicMs, (nowMs) => {
      if (nowMs - saidAtMs < sayEveryMs) return Effect.void
      saidAtMs = nowMs
      const problem = cause.reasons.filter(Cause.isDieReason).map(({ defect }) => String(defect))[0] ?? ""
      return Effect.logError("a request needs the store, which fails").pipe(Effect.annotateLogs({ problem }))
    })

  return <E, R>(
    handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
    Effect.catchCauseIf(
      handled,
      (cause) => cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)),
      (cause) => Effect.as(say(cause), errorResponse(new StoreDown({ retryAfterMs }))),
    )
}
