// The messages between a host (gateway side, actors/engine/EngineHost) and an engine process or thread (engineMain).
// Plain structured-clone data: the same objects travel over child-process IPC and over a MessagePort.
// One channel in each direction, in order, so a cancel can never overtake the request it cancels. What the gateway sends in one
// tick travels as one list of ToEngine messages (actors/OutgoingBatch), what an engine sends as one `step`.
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import type { EngineFacts, EngineKind, EngineSpec } from "./Engine.ts"

/** Request ids are chosen by the host, unique for the life of the engine process. */
export type RequestId = number

export type ToEngine =
  | { readonly t: "load"; readonly spec: EngineSpec }
  | { readonly t: "open"; readonly id: RequestId; readonly request: unknown }
  /** Answered by the request's end (or error) like any other finish; unknown ids are ignored. */
  | { readonly t: "cancel"; readonly id: RequestId }
  | { readonly t: "pause"; readonly id: RequestId }
  | { readonly t: "resume"; readonly id: RequestId }
  /** The host has dealt with this many more steps; see EngineServer for what happens without. */
  | { readonly t: "ack"; readonly steps: number }
  | { readonly t: "ping"; readonly n: number }
  /** Do without caches that can be had again, or have them again: the node's memory is, or is no longer, nearly full. */
  | { readonly t: "lean"; readonly on: boolean }
  /** Use no more CPU threads than this: other models work, or no longer do. Engines with a fixed number ignore it. */
  | { readonly t: "threads"; readonly most: number }
  /** Close the scope and exit; the host kills what has not exited by its deadline. */
  | { readonly t: "stop" }

export interface WireError {
  readonly reason: "LoadFailed" | "InvalidInput" | "PromptTooLong" | "Failed" | "Cancelled"
  readonly field: string
  readonly detail: string
  readonly promptTokens?: number
  readonly contextTokens?: number
}

/**
 * What happened to one request. Each kind is followed by the verb's own data (see Engine.ts), except `text`: a unit
 * of a text engine, which comes by the thousand, is followed by its two fields.
 */
export const EventKind = { started: 0, unit: 1, end: 2, error: 3, text: 4 } as const
export type EventKind = (typeof EventKind)[keyof typeof EventKind]

export type FromEngine =
  | {
      readonly t: "loaded"
      readonly kind: EngineKind
      readonly facts: EngineFacts
      readonly threads: ThreadChoice
      readonly residentBytes: number
    }
  | { readonly t: "load-failed"; readonly error: WireError }
  /** It has chosen its CPU threads again, see EngineThreads. */
  | { readonly t: "threads"; readonly threads: ThreadChoice }
  /** It opens large files, or no longer does: its event loop may be silent for as long as a load may take. */
  | { readonly t: "opening"; readonly on: boolean }
  /**
   * One decode step (or one turn of the engine's event loop) for all requests:
   * a flat list of id, kind, data; id, kind, data; …, or id, `text`, text, completion tokens; without an object a
   * token, a message of 64 tokens costs a third (4 µs to write and 7 to read, measured, instead of 11 and 23).
   */
  | { readonly t: "step"; readonly events: ReadonlyArray<unknown> }
  | { readonly t: "pong"; readonly n: number; readonly residentBytes: number; readonly open: number }
