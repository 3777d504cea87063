// The messages between the gateway (actors/engine/EngineHost) and an engine process or thread (engines/EngineServer), typed
// by the kind of the model. Plain data for the structured clone: the same objects travel over the IPC of a child process and
// over a MessagePort. There is one channel in each direction and it keeps the order, so a cancel cannot overtake its request.
// What the gateway sends in one tick travels as one list of ToEngine messages (actors/engine/OutgoingBatch), what an engine
// sends in one tick as one `step`.
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import type { EngineSpec } from "./Engine.ts"
import type { Owner, Preparation } from "./Preparation.ts"
import type { DeltaDetail } from "./Text.ts"
import type { End, EngineKind, Facts, Request, Started, Unit, Verb } from "./Verbs.ts"

/** Chosen by the gateway, unique for the life of the engine process. */
export type RequestId = number
/** Numbered as requests are, but apart from them: what is prepared has no slot yet. */
export type PreparationId = number

/** Begins a request. The verb is the type of the message, so that it tells which request follows. */
export interface Open<K extends EngineKind> {
  readonly type: Verb<K>
  readonly id: RequestId
  readonly request: Request<K>
  /** The preparation made for it, if any; its id is free again. */
  readonly prepared?: PreparationId
}

/** Everything that is sent to an engine besides requests. */
type Control =
  | { readonly type: "load"; readonly spec: EngineSpec }
  /** Answered by the request's end or error; an id that is not open is ignored. */
  | { readonly type: "cancel"; readonly id: RequestId }
  /** Answered in a step. */
  | {
      readonly type: "prepare"
      readonly id: PreparationId
      readonly terms: Preparation
      readonly owner: Owner
    }
  /** The request of a preparation will not follow. Not answered; an unknown id is ignored. */
  | { readonly type: "discard"; readonly id: PreparationId }
  | { readonly type: "pause"; readonly id: RequestId }
  | { readonly type: "resume"; readonly id: RequestId }
  /** The gateway has processed this many more steps; see `mostUnacknowledged` in OpenRequests. */
  | { readonly type: "ack"; readonly steps: number }
  | { readonly type: "ping"; readonly n: number }
  /** Drop the caches that can be computed again, or use them again: the node's memory is, or is no longer, nearly full. */
  | { readonly type: "lean"; readonly on: boolean }
  /** Use no more CPU threads than this: other models compute, or no longer do. Engines with a fixed number ignore it. */
  | { readonly type: "threads"; readonly most: number }
  /** Close the scope and exit. A process that has not exited by its deadline is killed. */
  | { readonly type: "stop" }

/** `K` of one kind: what the gateway sends to an engine of that kind. `AnyOpen`: what an engine process may receive. */
export type ToEngine<K extends EngineKind> = Open<K> | Control
export type AnyOpen = { readonly [K in EngineKind]: Open<K> }[EngineKind]
export type AnyToEngine = AnyOpen | Control

export interface WireError {
  readonly reason: "LoadFailed" | "InvalidInput" | "PromptTooLong" | "Limited" | "Failed" | "Cancelled"
  readonly field: string
  readonly detail: string
  readonly promptTokens?: number
  readonly contextTokens?: number
  readonly retryAfterMs?: number
}

export interface StartedEvent<K extends EngineKind> {
  readonly id: RequestId
  readonly started: Started<K>
}

/** The last event of a request. `error` is present if it failed, `end` if it did not. */
export type EndEvent<K extends EngineKind> =
  | { readonly id: RequestId; readonly end: End<K>; readonly error?: undefined }
  | { readonly id: RequestId; readonly error: WireError }

/** The request that it was made for can begin, or has failed. */
export interface PreparedEvent {
  readonly id: PreparationId
  readonly error?: WireError
}

/**
 * What happened to all requests in one decode step, or in one tick of the engine's event loop. For each request the
 * events happened in the order of the fields. Absent fields are empty.
 */
export interface Step<K extends EngineKind> {
  readonly type: "step"
  readonly started?: ReadonlyArray<StartedEvent<K>>
  readonly units?: Packed[K]
  readonly ended?: ReadonlyArray<EndEvent<K>>
  readonly prepared?: ReadonlyArray<PreparedEvent>
}

/**
 * Pieces of text, in their order: `numbers` holds the request's id and its completion tokens for each of `texts`. Without an
 * object for each token a message of 64 tokens costs a third (4 µs to write and 7 µs to read instead of 11 and 23, measured).
 */
export interface PackedText {
  readonly texts: ReadonlyArray<string>
  readonly numbers: ReadonlyArray<number>
  /** The details of those pieces that have one, by their index in `texts`, ascending. Absent if none has. */
  readonly details?: ReadonlyArray<readonly [at: number, detail: DeltaDetail]>
}

export interface UnitEvent<K extends EngineKind> {
  readonly id: RequestId
  readonly unit: Unit<K>
}

/** How the units of a kind travel; packed and read by Packing.ts. */
export interface Packed {
  readonly text: PackedText
  readonly speech: ReadonlyArray<UnitEvent<"speech">>
  readonly transcription: ReadonlyArray<UnitEvent<"transcription">>
  readonly embedding: ReadonlyArray<UnitEvent<"embedding">>
  readonly detection: ReadonlyArray<UnitEvent<"detection">>
}

export type FromEngine<K extends EngineKind> =
  | {
      readonly type: "loaded"
      readonly kind: K
      readonly facts: Facts<K>
      readonly threads: ThreadChoice
      readonly residentBytes: number
    }
  | { readonly type: "load-failed"; readonly error: WireError }
  /** The engine has chosen its CPU threads again, see EngineThreads. */
  | { readonly type: "threads"; readonly threads: ThreadChoice }
  /** The engine has measured its native calls, see EngineCosts. */
  | { readonly type: "costs"; readonly costs: CallCosts }
  /** The engine begins (`on`) or has ended opening large files: its event loop may be silent for as long as a load may take. */
  | { readonly type: "opening"; readonly on: boolean }
  | Step<K>
  | { readonly type: "pong"; readonly n: number; readonly residentBytes: number; readonly open: number }

export type AnyFromEngine = { readonly [K in EngineKind]: FromEngine<K> }[EngineKind]
