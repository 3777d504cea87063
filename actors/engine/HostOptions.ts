// What an EngineHost is made from, the events that it reports, and the figures that can be read of it.
import type { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { Urgency } from "#domain/queues/FairQueue.ts"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"
import type { EngineOutput } from "./EngineOutput.ts"
import type { ModelMeters } from "./ModelMeters.ts"
import type { RequestGauges } from "./ScheduledRequest.ts"

export interface HostOptions<K extends EngineKind> {
  readonly kind: K
  readonly entry: ModelEntry
  readonly spec: EngineSpec
  /** Files that the weights of `spec` name, absolute. */
  readonly parts?: ReadonlyArray<string>
  /** Variables that the engine's process needs. */
  readonly environment: Readonly<Record<string, string>>
  /** Whether background work has to wait at present. */
  readonly holdsBackground: () => boolean
  readonly onEvent: (event: HostEvent) => void
  /** The engine has chosen its CPU threads: at each load, and again once it could measure them. */
  readonly onThreads?: (choice: ThreadChoice) => void
  /** The engine has measured its native calls. */
  readonly onCosts?: (costs: CallCosts) => void
  /** How urgent its most urgent running request is; undefined while it computes nothing. */
  readonly onWork?: (urgency: Urgency | undefined) => void
  /** The model's counters; they outlive the host. */
  readonly meters?: ModelMeters
  /** Keeps what the engine prints; outlives the host. */
  readonly output?: EngineOutput
  /** Users whose requests were open when engines crashed; outlives the host. */
  readonly suspects?: CrashSuspects
}

/**
 * Sent to the Model actor and never awaited, so a busy actor cannot delay an engine. `crashed` and `hung`: an engine has
 * ended, and `restarting` or `gave-up` follows. `refused`: the engine could not load the weights.
 */
export interface HostEvent {
  readonly event: "ready" | "crashed" | "hung" | "restarting" | "gave-up" | "refused"
  readonly detail: string
}

export interface HostGauges extends RequestGauges {
  readonly slots: number
  readonly restarts: number
  readonly residentBytes: number
  readonly pid: number | undefined
}
