// The state of one model: its status, why it failed and when it may be tried again, what its loads and unloads have cost; and the
// types of what a model is made with and of what may be read of it. ModelEngine reports what happened; the next status follows
// from the table of ModelStatus.
import type { Effect } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { ModelUnavailable } from "#domain/wire/Errors.ts"
import type { DeviceExhausted } from "../device/DeviceActor.ts"
import type { AnyHost } from "../engine/EngineHost.ts"
import type { EngineOutput } from "../engine/EngineOutput.ts"
import type { ModelMeters } from "../engine/ModelMeters.ts"
import * as Limits from "../Limits.ts"
import { type ModelEvent, type ModelStatus, next } from "./ModelStatus.ts"

/** What loading and unloading have cost, for operators; milliseconds of the last one. Undefined before the first. */
interface ModelTimings {
  readonly loadMs: number | undefined
  /** From the unload's beginning until the process and its memory were gone. */
  readonly unloadToFreedMs: number | undefined
  readonly freedBytes: number | undefined
  readonly loads: number
  readonly unloads: number
}

/** What can be read of an engine of any kind; it takes no requests. */
type HostView = Pick<
  AnyHost,
  "facts" | "gauges" | "heldBytes" | "privateBytes" | "idleSinceMs" | "lean" | "threads" | "threadsNow"
>

/** The state of a model, which can be read at any time without a message to the actor. */
export interface ModelSnapshot {
  readonly entry: ModelEntry
  /** See Deployment. */
  readonly parameters: number | undefined
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
export type EvictUntilFits = (forModel: string, exhausted: DeviceExhausted) => Effect.Effect<boolean>

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
  readonly evictUntilFits?: EvictUntilFits
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

export class ModelState {
  readonly #id: string
  readonly #meters: ModelMeters
  readonly #onStatus: ((id: string, change: StatusChange) => void) | undefined
  #failedAtMs = Number.NEGATIVE_INFINITY
  status: ModelStatus = "unloaded"
  lastFailure = ""
  timings: ModelTimings = {
    loadMs: undefined,
    unloadToFreedMs: undefined,
    freedBytes: undefined,
    loads: 0,
    unloads: 0,
  }

  constructor(
    id: string,
    meters: ModelMeters,
    onStatus: ((id: string, change: StatusChange) => void) | undefined,
  ) {
    this.#id = id
    this.#meters = meters
    this.#onStatus = onStatus
  }

  move(event: ModelEvent): void {
    const from = this.status
    const to = next(from, event)
    this.status = to ?? from
    this.#onStatus?.(this.#id, { from, event, to })
  }

  /** Its engine is given up. */
  fail(detail: string): void {
    this.#failed(detail)
    this.move("gave-up")
  }

  /** It cannot be loaded as its weights are, so no engine was started. `again`: the next request may try at once. */
  lack(detail: string, again: boolean): void {
    this.move("load")
    this.fail(detail)
    if (again) this.#failedAtMs = Number.NEGATIVE_INFINITY
  }

  /** Its actor has given up, whatever it did. */
  lose(detail: string): void {
    this.#failed(detail)
    if (this.status === "unloaded") this.move("load")
    if (this.status !== "failed") this.move("gave-up")
  }

  /** Its process has not ended. */
  stick(heldBytes: number): void {
    this.#failed(`its process has not ended: ${heldBytes} bytes are still held`)
    this.move("stuck")
  }

  loaded(tookMs: number): void {
    this.#meters.loadMs.record(tookMs)
    this.timings = { ...this.timings, loadMs: tookMs, loads: this.timings.loads + 1 }
  }

  /** Its process is gone, and what it held. */
  unloaded(tookMs: number, freedBytes: number): void {
    this.#meters.unloadToFreedMs.record(tookMs)
    this.timings = {
      ...this.timings,
      unloadToFreedMs: tookMs,
      freedBytes,
      unloads: this.timings.unloads + 1,
    }
    this.move("unloaded")
  }

  /** How long a request may not try it again. */
  reviveInMs(): number {
    return this.status === "failed" ? this.#failedAtMs + Limits.reviveAfterMs - performance.now() : 0
  }

  unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.#id, retryAfterMs: Math.max(1_000, this.reviveInMs()) })
  }

  #failed(detail: string): void {
    this.lastFailure = detail
    this.#failedAtMs = performance.now()
  }
}
