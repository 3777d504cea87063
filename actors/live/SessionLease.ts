// What is asked for with a live session, and what is given: a lease, which begins sessions one at a time.
import type { ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { RunError } from "../engine/EngineRequest.ts"
import type { Speaker } from "./EngineLoad.ts"
import type { LiveTranscriptionOptions } from "./IncrementalTranscriber.ts"
import type { LiveSession } from "./LiveSession.ts"

export interface LiveRequest extends LiveTranscriptionOptions {
  readonly model: string
  /** Id of the organization, for the shares of organizations. */
  readonly org: string
  /** Seconds of new audio between two hypotheses, as the client requested. Absent: the model's own (LiveSessions). */
  readonly windowSeconds?: number
  /** The lease that the same client gives up for this one. */
  readonly replaces?: SessionLease
}

/** The length of its windows is known. */
export interface WindowedRequest extends LiveRequest {
  readonly windowSeconds: number
}

export type LiveError = RunError | ModelNotLoaded

/** The engine's work for the sessions of a lease. */
export interface EngineUse {
  readonly calls: number
  readonly engineMs: number
}

export interface SessionLease {
  readonly spent: EngineUse
  /** The entry of its engine's load. */
  readonly speaker: Speaker
  /** A fresh session, which ends by itself when it is idle or the node stops. The caller forks its `run`. */
  readonly begin: (nowMs: number, mostSeconds?: number) => LiveSession<LiveError>
  /** False once a reload has removed or replaced its model: sessions that have begun end here, and then the model ends. */
  readonly isCurrent: () => boolean
}
