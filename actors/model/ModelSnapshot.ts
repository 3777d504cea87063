// The options that a Model is made with, its state at one moment, and the changes of its status. Types only.
import type { Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { DeviceExhausted } from "../device/Device.ts"
import type { AnyHost } from "../engine/EngineHost.ts"
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

/** What can be read of an engine of any kind; it takes no requests. */
export type HostView = Pick<
  AnyHost,
  "facts" | "gauges" | "heldBytes" | "privateBytes" | "idleSinceMs" | "lean" | "threads" | "threadsNow"
>

/** The state of a model, which can be read at any time without a message to the actor. */
export interface ModelSnapshot {
  readonly entry: ModelEntry
  readonly status: ModelStatus
  readonly host: HostView | undefined
  /** Why it is `failed`; for operators, never for callers. */
  readonly lastFailure: string
  readonly timings: ModelTimings
  readonly meters: ModelMeters
  /** Lines that its engine printed, and events of the model. */
  readonly output: EngineOutput
}

/** Frees enough memory of a device for a claim that did not fit; false if it could not. */
export type MakeRoom = (forModel: string, exhausted: DeviceExhausted) => Effect.Effect<boolean>

export interface ModelOptions {
  readonly deployment: Deployment
  /** Finds the weights of an entry as they are now; called before each load. Absent: they stay where they were. */
  readonly relocate?: (entry: ModelEntry) => Effect.Effect<Deployment>
  /** Memory of its process besides the weights, bytes. */
  readonly processBytes: number
  /** Counters of the model that this one replaces, which go on counting. */
  readonly meters?: ModelMeters
  /** Output of the model that this one replaces, which goes on in the same way. */
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
