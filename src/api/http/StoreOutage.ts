// Answers a request that needs the store while the store cannot be read or written: 503 with a short Retry-After. Wraps
// all that a listener serves: a failure of the store is a defect to its callers, because none of them can handle it.
import { Cause, Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import { report } from "#domain/process/OperatorLog.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import { StoreDown } from "#domain/wire/Errors.ts"
import { errorResponse } from "#http/ErrorBody.ts"
import { isStoreDefect } from "#store/files/StoreErrors.ts"

/** Retry-After: a lock is rarely released, or a database restarted, sooner. A guess. */
const retryAfterMs = 1_000

const say = (cause: Cause.Cause<unknown>) =>
  report({
    event: "store unavailable",
    reason: exceptionReason(cause.reasons.find(Cause.isDieReason)?.defect),
    action: "look at the disk of the data directory, or at the database of EDGEWISE_DATABASE_URL",
  })

export const storeOutage = <E, R>(
  handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.catchCauseIf(
    handled,
    (cause) => cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)),
    (cause) => Effect.andThen(say(cause), errorResponse(new StoreDown({ retryAfterMs }))),
  )
