// What goes into a Model and what may be seen of it: the options it is made with, its view, and the changes of its status.
// Types only; made by ModelRegistry, read by the operator endpoints, /metrics and tests.
import type { Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { DeviceExhausted } from "../device/DeviceLedger.ts"
import type { EngineHost } from "../engine/EngineHost.ts"
import type { EngineOutput } from "../engine/EngineOutput.ts"
import type { ModelMeters } from "../engine/ModelMeters.ts"
import type { Deployment } from "./ModelRegistry.ts"
import type { ModelEvent, ModelStatus } from "./ModelStatus.ts"

/** What loading and unloading have cost, for operators; milliseconds of the last one. Undefined before the first. */
export interface ModelTimings {
  readonly loadMs: number | undefined
  /** From the unload's beginning until the process and its memory were gone. */
  readonly unloadToFreedMs: number | undefined
  readonly freedBytes: number | undefined
  readonly loads: number
  readonly unloads: number
}

/** What anybody may see of a model at any time, without asking its mailbox. */
export interface ModelSnapshot {
  readonly entry: ModelEntry
  readonly status: ModelStatus
  readonly host: EngineHost | undefined
  /** Why it is `failed`; for operators, never for callers. */
  readonly lastFailure: string
  readonly timings: ModelTimings
  readonly meters: ModelMeters
  /** What its engine printed, and what happened to it. */
  readonly output: EngineOutput
}

/** Empties enough of a device for a claim that did not fit; false where it could not. */
export type MakeRoom = (forModel: string, exhausted: DeviceExhausted) => Effect.Effect<boolean>

export interface ModelOptions {
  readonly deployment: Deployment
  /** Finds the weights of an entry as they are now; called before each load. Absent: they stay where they were. */
  readonly relocate?: (entry: ModelEntry) => Effect.Effect<Deployment>
  /** What its process costs beside the weights, bytes. */
  readonly processBytes: number
  /** Counters to go on with: those of the model that this one replaces. */
  readonly meters?: ModelMeters
  /** Lines to go on with, in the same way. */
  readonly output?: EngineOutput
  /** True where the model that this one replaces was unloaded by an operator. */
  readonly held?: boolean
  /** Without a request for this long it is unloaded; 0 never. */
  readonly idleUnloadMs?: number
  readonly makeRoom?: MakeRoom
  /** Whether background work has to wait at present. */
  readonly holdsBackground?: () => boolean
  /** Sees every change of status as it happens. */
  readonly onStatus?: (id: string, change: StatusChange) => void
}

/** One step in the table of ModelStatus; `to` is undefined where the table has none, which would be a defect. */
export interface StatusChange {
  readonly from: ModelStatus
  readonly event: ModelEvent
  readonly to: ModelStatus | undefined
}
