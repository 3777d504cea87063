// What every engine is: a descriptor (data) and an `acquire` that gives a loaded engine inside a Scope. Closing the scope
// unloads it. Engines know nothing of HTTP, accounts or the gateway.
//
// There is one verb for each kind of model (Verbs.ts). A verb is an Effect that runs as long as its request, and interrupting
// it cancels the request. The units that it produces (pieces of text, PCM, segments) are passed to an Outlet, which is a plain
// function call: waking a fiber for each token would cost more than everything else between the engine and the socket.
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { ThreadChoice, ThreadTrial } from "#domain/threads/ThreadChoice.ts"
import type { Owner, Preparation, Prepared } from "./Preparation.ts"
import type { End, EngineKind, Facts, Started, Unit, Verb, Verbs } from "./Verbs.ts"

// One import for adapters: what their kind takes and gives.
export type * from "./Detection.ts"
export type * from "./Embedding.ts"
export type { Owner, Preparation, Prepared } from "./Preparation.ts"
export type * from "./Speech.ts"
export type * from "./Text.ts"
export type * from "./Transcription.ts"
export type { EngineKind } from "./Verbs.ts"

/**
 * A failure inside an engine, with facts. `InvalidInput`, `PromptTooLong` and `Limited` are the caller's fault, the others are not.
 * `Limited`: the caller has had its share for now.
 */
export class EngineError extends Schema.TaggedError<EngineError>()("EngineError", {
  reason: Schema.Literals(["LoadFailed", "InvalidInput", "PromptTooLong", "Limited", "Failed"]),
  /** `InvalidInput` and `Limited`: the request field at fault. `PromptTooLong`: "messages" or "prompt". Otherwise empty. */
  field: Schema.String,
  detail: Schema.String,
  /** `PromptTooLong` only. */
  promptTokens: Schema.optionalKey(Schema.Int),
  contextTokens: Schema.optionalKey(Schema.Int),
  /** `Limited` only. */
  retryAfterMs: Schema.optionalKey(Schema.Finite),
}) {}

/** A model cannot be loaded. `field`: the role or option at fault; empty for none. */
export const loadFailed = (field: string, detail: string): EngineError =>
  new EngineError({ reason: "LoadFailed", field, detail })

/** A loaded engine could not do its work. */
export const callFailed = (detail: string): EngineError =>
  new EngineError({ reason: "Failed", field: "", detail })

/** The engine cannot do what the request asks for. `field`: the field at fault. */
export const invalidInput = (field: string, detail: string): EngineError =>
  new EngineError({ reason: "InvalidInput", field, detail })

/** What the catalog says about one model, with absolute paths, as an engine receives it. Plain data. */
export interface EngineSpec {
  readonly modelId: string
  readonly adapter: string
  /** Role → absolute path, for example `{ weights: "/…/model.gguf" }`. The adapter names the roles. */
  readonly files: Readonly<Record<string, string>>
  /** Adapter options from the catalog (context size, sequences, fake timings, …). Each adapter decodes its own. */
  readonly options: Readonly<Record<string, unknown>>
  /** CPU threads. With `trial` the most that there are; an engine without trials of its own gets its final number. */
  readonly threads: number
  /** The numbers to choose from; absent if the catalog gives the number of threads, or if it does not matter. */
  readonly trial?: ThreadTrial
  /** Durations of native calls that an earlier engine has measured with these weights on this machine. */
  readonly costs?: CallCosts
}

/**
 * Where the events of one request go. `push` is synchronous and never blocks. A unit pushed while `paused` is still
 * delivered, so a verb reads `paused` between units and waits for `resumed`.
 */
export interface Outlet<K extends EngineKind> {
  /** Called once, before the first unit: the request was understood and has begun. */
  readonly started: (started: Started<K>) => void
  readonly push: (unit: Unit<K>) => void
  readonly paused: () => boolean
  /** Completes when the reader has caught up; at once if it is not paused. */
  readonly resumed: Effect.Effect<void>
  /** What the engine has prepared for the request before; released when the request ends. */
  readonly prepared?: Prepared
}

/** CPU threads of an engine that can change their number between two native calls. */
export interface EngineThreads {
  /** What it chose when it loaded, or later. */
  readonly choice: () => ThreadChoice
  /** Calls back when it has chosen again: the machine was too busy to measure before. */
  readonly onChoice: (listener: (choice: ThreadChoice) => void) => void
  /** From the next native call on it uses no more than this, at least 1. */
  readonly limit: (most: number) => void
}

/** Durations of an engine's native calls. */
interface EngineCosts {
  /** Calls back when they were measured, in a moment without requests. */
  readonly onMeasured: (listener: (costs: CallCosts) => void) => void
}

/** A loaded engine of one kind: its facts, and its verb under the name that the table gives it. */
type Loaded<K extends EngineKind> = {
  readonly kind: K
  readonly facts: Facts<K>
} & {
  readonly [V in Verb<K>]: (request: Verbs[K]["input"], out: Outlet<K>) => Effect.Effect<End<K>, EngineError>
}

export interface TextEngine extends Loaded<"text"> {
  /** While on, it keeps nothing that can be computed again. Engines without caches leave it out. */
  readonly lean?: (on: boolean) => void
  /** Only engines whose facts say `prepares` have it. Requests may come without it, and are prepared then. */
  readonly prepare?: (terms: Preparation, owner: Owner) => Effect.Effect<Prepared, EngineError>
  /** Only engines that can change their number of threads while they run have it. */
  readonly threads?: EngineThreads
  /** Only engines that measure them have it. */
  readonly costs?: EngineCosts
}

export interface SpeechEngine extends Loaded<"speech"> {}

export interface TranscriptionEngine extends Loaded<"transcription"> {}

export interface EmbeddingEngine extends Loaded<"embedding"> {
  /** As for text engines. */
  readonly threads?: EngineThreads
}

export interface DetectionEngine extends Loaded<"detection"> {}

interface Engines {
  readonly text: TextEngine
  readonly speech: SpeechEngine
  readonly transcription: TranscriptionEngine
  readonly embedding: EmbeddingEngine
  readonly detection: DetectionEngine
}

export type Engine<K extends EngineKind = EngineKind> = Engines[K]

/** What is known of an engine before it is loaded, and how to load it. */
export interface EngineDescriptor<K extends EngineKind = EngineKind> {
  readonly adapter: string
  readonly kind: K
  /** Chooses the CPU threads before the load, for engines whose number is fixed by it. Called only with `spec.trial`. */
  readonly chooseThreads?: (spec: EngineSpec, trial: ThreadTrial) => Effect.Effect<ThreadChoice, EngineError>
  /** Its engines use no more CPU threads than this from the next native call on. For engines without `threads`. */
  readonly limitThreads?: (most: number) => void
  readonly acquire: (spec: EngineSpec) => Effect.Effect<Engine<K>, EngineError, Scope.Scope>
}
