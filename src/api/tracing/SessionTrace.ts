// A live socket's session for traces: begins after the handshake, ends with the close code and the amounts of work.
// Exists only if traces are exported. Knows no event and no frame; counts what is reported to it.
import { Cause, Effect, Exit, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { LiveSession } from "#actors/live/LiveSession.ts"
import type { LiveError, SessionLease } from "#actors/live/SessionLease.ts"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { type Facts, type TracedWork, type WorkName, workBehind } from "#http/TracedWork.ts"

/** RFC 6455 7.4.1: close codes of a socket whose handler ended by itself, was left by the client or failed. */
const normal = 1000
const goingAway = 1001
const internalError = 1011

const codeOf = (exit: Exit.Exit<unknown, unknown>): number =>
  Exit.isSuccess(exit) ? normal : Cause.hasInterruptsOnly(exit.cause) ? goingAway : internalError

export class SessionTrace {
  readonly work: TracedWork
  /** Captions or pieces of text that were sent to the client. */
  deltas = 0
  /** Sessions of the recogniser, or generations. */
  parts = 0
  /** Of generations that have ended. */
  inputTokens = 0
  outputTokens = 0
  /** Silences of a conversation that were judged by the language model, too. */
  messageEnds = 0
  #closeCode: number | undefined
  #heardSamples = 0
  #current: LiveSession<LiveError> | undefined
  /** Of leases that have ended. */
  #engineMs = 0
  #engineCalls = 0
  readonly #places = new Set<SessionLease>()

  constructor(work: TracedWork) {
    this.work = work
  }

  /** Only the first code counts: later ones repeat it. */
  closed(code: number): void {
    this.#closeCode ??= code
  }

  /** The peer's close code. */
  readonly left = ({ reason }: SocketError): void => {
    if (reason._tag === "SocketCloseError") this.closed(reason.code)
  }

  /** Follows the sessions of a lease, one after the other, until it ends. */
  follow(place: SessionLease): SessionLease {
    this.#places.add(place)
    return {
      spent: place.spent,
      isCurrent: place.isCurrent,
      speaker: place.speaker,
      begin: (nowMs) => {
        this.#heardSamples += this.#current?.samples ?? 0
        this.#current = place.begin(nowMs)
        this.parts++
        return this.#current
      },
    }
  }

  leave(place: SessionLease): void {
    if (!this.#places.delete(place)) return
    this.#engineMs += place.spent.engineMs
    this.#engineCalls += place.spent.calls
  }

  end(exit: Exit.Exit<unknown, unknown>, facts: Facts): void {
    for (const place of this.#places) this.leave(place)
    const code = this.#closeCode ?? codeOf(exit)
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

  /** Audio received, and the engine's work for it. */
  hearing(): Facts {
    for (const place of this.#places) this.leave(place)
    const samples = this.#heardSamples + (this.#current?.samples ?? 0)
    return {
      "edgewise.audio_ms": samplesToMs(samples, listenRateHz),
      "edgewise.engine_ms": this.#engineMs,
      "edgewise.engine_calls": this.#engineCalls,
    }
  }
}

/**
 * The session of the current request, from now to the end of the scope, reporting `facts` at its end;
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
