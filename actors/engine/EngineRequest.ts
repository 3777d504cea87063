// One request to an engine from the view of its caller: options, reader and errors. SlotScheduler runs requests.

import type { Effect } from "effect"
import type { Urgency } from "#domain/queues/FairQueue.ts"
import {
  type AtCapacity,
  EngineFailed,
  type InsufficientMemory,
  InvalidRequest,
  type MemoryPressure,
  type ModelUnavailable,
  PromptTooLong,
  RateLimited,
} from "#domain/wire/Errors.ts"
import type { WireError } from "#engines/protocol/EngineProtocol.ts"
import type { Reader } from "#engines/protocol/Reader.ts"
import type { End, EngineKind, Request, Started, Unit } from "#engines/protocol/Verbs.ts"

/** The reader of a request's units. Its end is the result of the request. */
export type RequestReader<K extends EngineKind> = Reader<Unit<K>, Started<K>, never>

export type RunError =
  | AtCapacity
  | EngineFailed
  | InsufficientMemory
  | InvalidRequest
  | MemoryPressure
  | ModelUnavailable
  | PromptTooLong
  | RateLimited

export interface RunOptions {
  /** Which requests go first; `interactive` if absent. */
  readonly urgency?: Urgency
  /** The queue alternates between users. */
  readonly user?: string
  /** Of the user. */
  readonly organization?: string
  /** Part of work that was admitted before: it goes on when new work is refused, and is not refused for a full queue. */
  readonly continues?: boolean
}

/**
 * Runs one request of a kind's verb to its end; interruption cancels it. The model's handle, the Model and the scheduler of
 * its engine have this one signature: each passes the request on to the next.
 */
export type Run<K extends EngineKind, E = RunError, Options extends RunOptions = RunOptions> = (
  request: Request<K>,
  reader: RequestReader<K>,
  options?: Options,
) => Effect.Effect<End<K>, E>

/** What an engine reported about one request, as the error of that request. */
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
    case "Limited":
      return new RateLimited({
        retryAfterMs: error.retryAfterMs ?? 0,
        field: error.field,
        problem: error.detail,
      })
    default:
      return new EngineFailed({ model, reason: "failed", detail: error.detail })
  }
}
