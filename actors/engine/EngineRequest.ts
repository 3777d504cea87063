// One request to an engine as its asker sees it: what it may ask for, what it is told, how it can fail. Types, and the
// reading of what an engine says went wrong. Called by SlotScheduler; the api listens and handles the errors.

import type { Urgency } from "#domain/queues/WaitingLine.ts"
import {
  type AtCapacity,
  EngineFailed,
  type InsufficientMemory,
  InvalidRequest,
  type MemoryPressure,
  type ModelUnavailable,
  PromptTooLong,
} from "#domain/wire/Errors.ts"
import type { WireError } from "#engines/protocol/EngineProtocol.ts"

/** Lets a slow reader hold its own producer, and nobody else's. */
export interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

/** Called on the event loop as the engine's messages arrive; must be quick and must not throw. */
export interface Listener<Started, Unit> {
  started(facts: Started, flow: Flow): void
  unit(unit: Unit): void
}

export type RunError =
  | AtCapacity
  | EngineFailed
  | InsufficientMemory
  | InvalidRequest
  | MemoryPressure
  | ModelUnavailable
  | PromptTooLong

export interface RunOptions {
  /** Which requests go first; `interactive` where absent. */
  readonly urgency?: Urgency
  /** Users take turns in the queue. */
  readonly user?: string
  /** Part of work that was admitted before: it goes on when new work is refused, and is not refused for a full queue. */
  readonly continues?: boolean
}

/** What an engine said of one request, as the error of that request. */
export const runErrorOf = (model: string, error: WireError): RunError => {
  switch (error.reason) {
    case "InvalidInput":
      return new InvalidRequest({ field: error.field, problem: error.detail })
    case "PromptTooLong":
      return new PromptTooLong({
        field: error.field,
        promptTokens: error.promptTokens ?? 0,
        contextTokens: error.contextTokens ?? 0,
      })
    default:
      return new EngineFailed({ model, reason: "failed", detail: error.detail })
  }
}
