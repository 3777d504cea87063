// A defect anywhere in a conversation ends the conversation: in the fiber that reads its events, and in those beside it, for which no
// other waits. Answers and transcripts are no part of it: they fail by themselves, with events of their own.
import { Cause, Deferred, Effect } from "effect"
import { CloseEvent, type SocketError } from "effect/socket/Socket"
import type { Tell } from "../live/RealtimeItems.ts"

/** Runs work of a conversation so that its defect ends the conversation. */
export type Guard = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

interface CrashGuard {
  readonly guard: Guard
  /** Fails with the first defect of guarded work. */
  readonly crashed: Effect.Effect<never>
}

export const crashGuard = (): CrashGuard => {
  const crash = Deferred.makeUnsafe<never>()
  return {
    guard: (work) =>
      Effect.tapCause(work, (cause) =>
        Effect.sync(() => {
          if (Cause.hasDies(cause)) Deferred.doneUnsafe(crash, Effect.die(Cause.squash(cause)))
        }),
      ),
    crashed: Deferred.await(crash),
  }
}

/** Tells the client of a conversation's crash, and closes its socket. */
export const tellCrash = (
  tell: Tell,
  write: (close: CloseEvent) => Effect.Effect<void, SocketError>,
): Effect.Effect<void> => {
  const error = { type: "server_error", code: "internal_error", message: "Internal server error" }
  return Effect.ignore(
    Effect.andThen(
      tell("error", { error: { ...error, param: null, event_id: null } }),
      write(new CloseEvent(1011, "failed")),
    ),
  )
}
