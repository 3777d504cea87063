// One request in a SlotScheduler, from its arrival to its end, with the times that the model's metrics need.
import type { Effect } from "effect"
import type { Place, Urgency } from "#domain/queues/FairQueue.ts"
import type { PreparationId, RequestId } from "#engines/protocol/EngineProtocol.ts"
import type { Owner, Preparation } from "#engines/protocol/Preparation.ts"
import type { End, EngineKind, Request } from "#engines/protocol/Verbs.ts"
import type { RequestReader, RunError } from "./EngineRequest.ts"
import type { ModelMeters } from "./ModelMeters.ts"

export interface ScheduledRequest<K extends EngineKind> {
  readonly request: Request<K>
  /** Slots that it takes. */
  readonly slots: number
  readonly place: Place
  readonly reader: RequestReader<K>
  readonly resume: (exit: Effect.Effect<End<K>, RunError>) => void
  /** What the engine prepares before it gets a slot; undefined if nothing is prepared. */
  readonly preparation: Preparing | undefined
  /** Set while the engine has it. */
  id: RequestId | undefined
  readonly requestedAtMs: number
  startedAtMs: number
  /** When its last unit arrived; 0 before the first. */
  unitAtMs: number
  /** Set once its caller has cancelled it. */
  cancelledAtMs: number | undefined
  /** Whether its reader is too slow, so that the engine pauses it. */
  paused: boolean
}

export interface Preparing {
  readonly terms: Preparation
  readonly owner: Owner
  /** Set while the engine prepares it or keeps what it has prepared. */
  id: PreparationId | undefined
  done: boolean
}

/** True if it could begin on a free slot. */
export const isPrepared = ({ preparation }: Pick<ScheduledRequest<EngineKind>, "preparation">): boolean =>
  preparation === undefined || preparation.done

/** A request that has arrived now. */
export const scheduledRequest = <K extends EngineKind>(
  request: Request<K>,
  slots: number,
  place: Place,
  reader: RequestReader<K>,
  resume: ScheduledRequest<K>["resume"],
  preparation?: Preparing,
): ScheduledRequest<K> => ({
  request,
  slots,
  place,
  reader,
  resume,
  preparation,
  id: undefined,
  requestedAtMs: performance.now(),
  startedAtMs: 0,
  unitAtMs: 0,
  cancelledAtMs: undefined,
  paused: false,
})

export interface RequestGauges {
  readonly open: number
  readonly busySlots: number
  readonly waiting: number
  /** Longest time between a request's cancelling and its slot being free, milliseconds. */
  readonly slowestCancelMs: number
}

/** Records the time between units, with the arrival time of the message: reading the clock for each unit would cost more. */
export const recordUnit = <K extends EngineKind>(
  meters: ModelMeters,
  request: ScheduledRequest<K>,
  nowMs: number,
): void => {
  // Several units of one request in one message arrive together and count as one.
  if (request.unitAtMs === nowMs) return
  if (request.unitAtMs > 0) meters.unitGapMs.record(nowMs - request.unitAtMs)
  else if (request.place.urgency !== "background") meters.firstUnitMs.record(nowMs - request.requestedAtMs)
  request.unitAtMs = nowMs
}

/** From the most urgent to the least. */
const urgencies: ReadonlyArray<Urgency> = ["live", "interactive", "background"]

/** The highest urgency of the requests that are not paused; undefined if there is none. */
export const mostUrgent = (
  requests: ReadonlyArray<Pick<ScheduledRequest<EngineKind>, "paused" | "place">>,
): Urgency | undefined => {
  let most: Urgency | undefined
  for (const { paused, place } of requests)
    if (!paused && (most === undefined || urgencies.indexOf(place.urgency) < urgencies.indexOf(most)))
      most = place.urgency
  return most
}
