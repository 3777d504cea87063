// What can be read of a model at any time, without a message to its actor.
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { AnyHost } from "../engine/EngineHost.ts"
import type { EngineOutput } from "../engine/EngineOutput.ts"
import type { ModelMeters } from "../engine/ModelMeters.ts"
import type { ModelState } from "./ModelState.ts"

/** What can be read of an engine of any kind; it takes no requests. */
export type HostView = Pick<
  AnyHost,
  | "choosesThreads"
  | "facts"
  | "gauges"
  | "heldBytes"
  | "privateBytes"
  | "idleSinceMs"
  | "lean"
  | "threads"
  | "threadsNow"
>

export interface ModelSnapshot extends Pick<ModelState, "status" | "lastFailure" | "timings"> {
  readonly entry: ModelEntry
  /** See Deployment. */
  readonly parameters: number | undefined
  readonly host: HostView | undefined
  readonly meters: ModelMeters
  /** Lines that its engine printed, and events of the model. */
  readonly output: EngineOutput
}
