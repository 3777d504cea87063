// How one model stands: its status, why it failed and when it may be tried again, what its loads and unloads have cost. Kept
// by the Model actor, which tells it what happened; shown to operators through ModelSnapshot. Decides nothing but the next
// status, by the table of ModelStatus.
import { ModelUnavailable } from "#domain/wire/Errors.ts"
import type { ModelMeters } from "../engine/ModelMeters.ts"
import * as Tree from "../Tree.ts"
import type { ModelTimings, StatusChange } from "./ModelSnapshot.ts"
import { type ModelEvent, type ModelStatus, next } from "./ModelStatus.ts"

export class ModelState {
  private readonly id: string
  private readonly meters: ModelMeters
  private readonly onStatus: ((id: string, change: StatusChange) => void) | undefined
  private failedAtMs = Number.NEGATIVE_INFINITY
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
    this.id = id
    this.meters = meters
    this.onStatus = onStatus
  }

  move(event: ModelEvent): void {
    const from = this.status
    const to = next(from, event)
    this.status = to ?? from
    this.onStatus?.(this.id, { from, event, to })
  }

  /** Its engine is given up. */
  fail(detail: string): void {
    this.failed(detail)
    this.move("gave-up")
  }

  /** It cannot be loaded as its weights are, so no engine was started. `again`: the next request may try at once. */
  lack(detail: string, again: boolean): void {
    this.move("load")
    this.fail(detail)
    if (again) this.failedAtMs = Number.NEGATIVE_INFINITY
  }

  /** Its process has not ended. */
  stick(heldBytes: number): void {
    this.failed(`its process has not ended: ${heldBytes} bytes are still held`)
    this.move("stuck")
  }

  loaded(tookMs: number): void {
    this.meters.loadMs.record(tookMs)
    this.timings = { ...this.timings, loadMs: tookMs, loads: this.timings.loads + 1 }
  }

  /** Its process is gone, and what it held. */
  unloaded(tookMs: number, freedBytes: number): void {
    this.meters.unloadToFreedMs.record(tookMs)
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
    return this.status === "failed" ? this.failedAtMs + Tree.reviveAfterMs - performance.now() : 0
  }

  unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.id, retryAfterMs: Math.max(1_000, this.reviveInMs()) })
  }

  private failed(detail: string): void {
    this.lastFailure = detail
    this.failedAtMs = performance.now()
  }
}
