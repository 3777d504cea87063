// What ends a conversation besides its client: the node stops, the credential ends, the session has reached its time, or its client
// secret has reached its cost or is used by a new session.
import { Effect } from "effect"
import { CloseEvent, type SocketError } from "effect/socket/Socket"
import type { Drain } from "#actors/Drain.ts"
import { maxMicroDollarsOf, type SessionLimits } from "#domain/conversation/ClientSecretTerms.ts"
import { formatUsd } from "#domain/models/Money.ts"
import type { Accounts, Principal } from "#store/accounts/Accounts.ts"
import { credentialEnds } from "../../access/CredentialEnd.ts"
import type { Tell } from "../../live/RealtimeItems.ts"
import { type SecretSession, silentMs } from "./SecretSessions.ts"

/** Longest conversation, seconds. OpenAI's limit. */
export const longestSeconds = 60 * 60

/** Interval of looks at what a limited session has used, milliseconds. Nothing is charged beyond the limit in between. A guess. */
const lookEveryMs = 20

interface SessionEndTerms {
  readonly tell: Tell
  readonly accounts: Accounts["Service"]
  readonly drain: Drain["Service"]
  readonly caller: Principal
  /** Those of a client secret; none for a key. */
  readonly limits: SessionLimits
  /** Undefined for a key. */
  readonly ofSecret: Pick<SecretSession, "replaced" | "spending"> | undefined
  /** Completes when the turn and the answer that are under way have ended. */
  readonly finished: Effect.Effect<void>
}

/** Seconds until a session ends by itself. */
export const secondsOf = ({ max_session_seconds: seconds }: SessionLimits): number =>
  Math.min(seconds ?? longestSeconds, longestSeconds)

const tellEnd = (tell: Tell, code: string, message: string) =>
  tell("error", {
    error: { type: "invalid_request_error", code, message, param: null, event_id: null },
  })

const durationOf = (seconds: number): string =>
  seconds % 60 === 0 ? `${seconds / 60} minutes` : `${seconds} seconds`

/** Completes with the first of these ends. */
export const sessionEnd = (terms: SessionEndTerms): Effect.Effect<CloseEvent, SocketError> => {
  const { accounts, caller, drain, finished, limits, ofSecret, tell } = terms
  const drained = Effect.andThen(
    drain.closing,
    Effect.as(finished, new CloseEvent(1001, "server is shutting down")),
  )
  const locked = Effect.map(credentialEnds(accounts, caller), (end) => new CloseEvent(1008, end))
  const seconds = secondsOf(limits)
  const expired = Effect.andThen(
    Effect.sleep(seconds * 1000),
    Effect.as(
      tellEnd(tell, "session_expired", `Your session hit the maximum duration of ${durationOf(seconds)}.`),
      new CloseEvent(1000, "session expired"),
    ),
  )
  if (ofSecret === undefined) return Effect.raceAllFirst([drained, locked, expired])
  const { replaced, spending } = ofSecret
  const silent = `No event came for ${silentMs / 1000} seconds, and another session of the client secret has begun beyond its max_sessions.`
  const left = replaced.pipe(
    Effect.andThen(tellEnd(tell, "session_replaced", silent)),
    Effect.as(new CloseEvent(1008, "replaced")),
  )
  if (spending === undefined) return Effect.raceAllFirst([drained, locked, expired, left])
  const usd = formatUsd(maxMicroDollarsOf(limits) ?? 0)
  const spent = Effect.suspend(() => Effect.sleep(lookEveryMs)).pipe(
    Effect.repeat({ until: () => spending.isReached }),
    Effect.andThen(
      tellEnd(
        tell,
        "cost_limit_reached",
        `The sessions of the client secret hit their maximum cost of ${usd} USD.`,
      ),
    ),
    Effect.as(new CloseEvent(1008, "cost limit")),
  )
  return Effect.raceAllFirst([drained, locked, expired, left, spent])
}
