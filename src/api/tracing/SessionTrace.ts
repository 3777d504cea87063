// A live socket's session for traces: begun behind the handshake, told with how it ended and what it took. Each of the
// socket endpoints keeps one where traces are exported, and none elsewhere. Knows no event and no frame; counts what it is
// told of.
import { Cause, Effect, Exit, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { LiveSession } from "#actors/live/LiveSession.ts"
import type { LiveError, SessionLease } from "#actors/live/LiveSessions.ts"
import { LISTEN_RATE_HZ, samplesToMs } from "#domain/audio/Audio.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { type Facts, type TracedWork, type WorkName, workBehind } from "#http/TracedWork.ts"

/** RFC 6455 7.4.1: what a socket is closed with when its handler ended by itself, left or failed. */
const normal = 1000
const goingAway = 1001
const internalError = 1011

const codeOf = (exit: Exit.Exit<unknown, unknown>): number =>
  Exit.isSuccess(exit) ? normal : Cause.hasInterruptsOnly(exit.cause) ? goingAway : internalError

export class SessionTrace {
  readonly work: TracedWork
  /** Captions or pieces of text that the client was told. */
  deltas = 0
  /** Sessions of the recogniser, or generations. */
  parts = 0
  /** Of generations that have ended. */
  inputTokens = 0
  outputTokens = 0
  private closeCode: number | undefined
  private heardSamples = 0
  private current: LiveSession<LiveError> | undefined
  /** Of places that were left. */
  private engineMs = 0
  private engineCalls = 0
  private readonly places = new Set<SessionLease>()

  constructor(work: TracedWork) {
    this.work = work
  }

  /** The first code counts: what follows is its echo. */
  closed(code: number): void {
    this.closeCode ??= code
  }

  /** The peer's end, as the socket tells it. */
  readonly left = ({ reason }: SocketError): void => {
    if (reason._tag === "SocketCloseError") this.closed(reason.code)
  }

  /** Follows the sessions of a place, one after the other, until it is left. */
  follow(place: SessionLease): SessionLease {
    this.places.add(place)
    return {
      spent: place.spent,
      isCurrent: place.isCurrent,
      speaker: place.speaker,
      begin: (nowMs) => {
        this.heardSamples += this.current?.samples ?? 0
        this.current = place.begin(nowMs)
        this.parts++
        return this.current
      },
    }
  }

  leave(place: SessionLease): void {
    if (!this.places.delete(place)) return
    this.engineMs += place.spent.engineMs
    this.engineCalls += place.spent.calls
  }

  end(exit: Exit.Exit<unknown, unknown>, facts: Facts): void {
    for (const place of this.places) this.leave(place)
    const code = this.closeCode ?? codeOf(exit)
    this.work.end(
      {
        "edgewise.request_id": this.work.notes.requestId,
        "edgewise.close_code": code,
        "edgewise.deltas": this.deltas,
        ...facts,
      },
      code === internalError,
    )
  }

  /** What was generated. */
  generating(): Facts {
    return {
      "edgewise.generations": this.parts,
      "edgewise.input_tokens": this.inputTokens,
      "edgewise.output_tokens": this.outputTokens,
    }
  }

  /** What was heard, and what hearing it took. */
  hearing(): Facts {
    for (const place of this.places) this.leave(place)
    const samples = this.heardSamples + (this.current?.samples ?? 0)
    return {
      "edgewise.audio_ms": samplesToMs(samples, LISTEN_RATE_HZ),
      "edgewise.engine_ms": this.engineMs,
      "edgewise.engine_calls": this.engineCalls,
    }
  }
}

/**
 * The session behind the request that is being answered, from now to the end of the scope, when `facts` are asked for;
 * undefined where traces are not exported.
 */
export const traceSession = (
  name: WorkName,
  facts: (trace: SessionTrace) => Facts,
): Effect.Effect<SessionTrace | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    const work = workBehind(yield* CurrentNodeMeters, name, yield* CurrentRequest)
    if (work === undefined) return undefined
    const trace = new SessionTrace(work)
    yield* Effect.addFinalizer((exit) => Effect.sync(() => trace.end(exit, facts(trace))))
    return trace
  })
