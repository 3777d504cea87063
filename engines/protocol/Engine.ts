// What every engine is: a descriptor (data) and an `acquire` that yields a loaded engine inside a Scope.
// Unloading is closing that scope. Called by engineMain alone; engines never see HTTP, accounts or the gateway.
//
// One verb a kind. A verb is an Effect that lives as long as its request: interrupting it is cancelling the
// request, and the units it produces (text deltas, PCM chunks, segments) leave through an Outlet, a plain
// function call, because a fiber wake-up per token costs more than the token's way to the socket.
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { SampleSpan } from "#domain/audio/SampleRing.ts"
import type { ThreadChoice, ThreadTrial } from "#domain/threads/ThreadChoice.ts"

/** What an engine can do, and therefore which verb it has. */
export type EngineKind = "text" | "speech" | "transcription"

/** A failure inside an engine, with facts. `InvalidInput` is the caller's fault, the others are not. */
export class EngineError extends Schema.TaggedError<EngineError>()("EngineError", {
  reason: Schema.Literals(["LoadFailed", "InvalidInput", "PromptTooLong", "Failed"]),
  /** `InvalidInput`: the request field at fault. `PromptTooLong`: "messages" or "prompt". Else empty. */
  field: Schema.String,
  detail: Schema.String,
  /** `PromptTooLong` only. */
  promptTokens: Schema.optionalKey(Schema.Int),
  contextTokens: Schema.optionalKey(Schema.Int),
}) {}

/** What the catalog says about one model, resolved to absolute paths, as an engine receives it. Plain data. */
export interface EngineSpec {
  readonly modelId: string
  readonly adapter: string
  /** Role → absolute path, e.g. `{ weights: "/…/model.gguf" }`. Roles are the adapter's own words. */
  readonly files: Readonly<Record<string, string>>
  /** Adapter options from the catalog (context size, sequences, fake timings, …). Each adapter decodes its own. */
  readonly options: Readonly<Record<string, unknown>>
  /** CPU threads. With `trial` the most that there are; an engine without trials of its own gets its final number. */
  readonly threads: number
  /** What to choose from; absent where the catalog says how many threads, or they do not matter. */
  readonly trial?: ThreadTrial
}

/**
 * Where a verb's units go. `push` is synchronous and never blocks; a unit pushed while `paused` is still
 * delivered, so a verb looks at `paused` between units and waits on `resumed`.
 */
export interface Outlet<Started, Unit> {
  /** Once, before the first unit: the request was understood and has begun. */
  readonly started: (facts: Started) => void
  readonly push: (unit: Unit) => void
  readonly paused: () => boolean
  /** Completes when the reader caught up; at once when not paused. */
  readonly resumed: Effect.Effect<void>
}

/** CPU threads of an engine that can change their number between two native calls. */
export interface EngineThreads {
  /** What it chose at its load, or later. */
  readonly choice: () => ThreadChoice
  /** Calls back when it has chosen again: the machine was too busy to measure before. */
  readonly onChoice: (listener: (choice: ThreadChoice) => void) => void
  /** From the next native call on it uses no more than this, at least 1. */
  readonly limit: (most: number) => void
}

// ---------------------------------------------------------------- text

export interface ChatTurn {
  readonly role: "system" | "user" | "assistant"
  readonly content: string
}

/** Sampling in the specification's terms; ranges are checked at the edge. */
export interface Sampling {
  /** 0 is greedy. */
  readonly temperature: number
  readonly topP: number
  /** 0 means the whole vocabulary. */
  readonly topK: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  /** 32-bit; equal seeds give equal text, whatever runs beside it. */
  readonly seed: number
}

export interface GenerateRequest {
  readonly prompt: { readonly turns: ReadonlyArray<ChatTurn> } | { readonly text: string }
  /** Upper bound; the engine clamps it to what the context has left. */
  readonly maxTokens: number
  readonly sampling: Sampling
  /** Up to 4; never part of the output. */
  readonly stop: ReadonlyArray<string>
}

export interface GenerateStarted {
  readonly promptTokens: number
  /** Prompt tokens whose state was still there from an earlier request. */
  readonly cachedTokens: number
}

/** Text that is final: whole UTF-8 characters, outside any possible stop sequence. */
export interface TextDelta {
  readonly text: string
  /** Completion tokens generated so far, this delta's included. */
  readonly completionTokens: number
}

export interface GenerateEnd {
  readonly finishReason: "stop" | "length"
  readonly promptTokens: number
  readonly completionTokens: number
}

export interface TextEngine {
  readonly kind: "text"
  readonly facts: {
    readonly contextTokens: number
    /** Sequences that decode side by side. */
    readonly slots: number
    /** For the start log and `/docs`, e.g. "llama, 1.0 M parameters". */
    readonly summary: string
  }
  readonly generate: (
    request: GenerateRequest,
    out: Outlet<GenerateStarted, TextDelta>,
  ) => Effect.Effect<GenerateEnd, EngineError>
  /** While on, it keeps nothing that can be had again. Engines without caches do without it. */
  readonly lean?: (on: boolean) => void
  /** Of engines that can change their number of threads while they run. */
  readonly threads?: EngineThreads
}

// ---------------------------------------------------------------- speech

export interface SynthesizeRequest {
  readonly text: string
  /** A preset voice id, or a reference clip as 16-bit mono samples with its exact transcript. */
  readonly voice:
    | { readonly preset: string }
    | { readonly clip: Int16Array; readonly rateHz: number; readonly transcript: string }
  /** ISO-639-1. */
  readonly language: string
  /** 0.25 to 4; duration is divided by it. */
  readonly speed: number
  /** A stream's pieces go ahead of a batch reply's while its listener could run dry. Default "stream". */
  readonly priority?: "stream" | "batch"
}

export interface SynthesizeStarted {
  /** Pieces cut so far, at least 1: later ones are cut while the first ones sound. */
  readonly pieces: number
}

/** Mono PCM, s16, 24 kHz. `samples` is never reused by the engine after `push`. */
export interface PcmChunk {
  readonly samples: Int16Array
}

export interface SynthesizeEnd {
  readonly samples: number
  /** Time that the work took, waiting for its turns excluded, milliseconds; absent where nobody measured. */
  readonly computeMs?: number
}

export interface SpeechEngine {
  readonly kind: "speech"
  readonly facts: {
    readonly slots: number
    readonly rateHz: number
    readonly voices: ReadonlyArray<string>
    readonly languages: ReadonlyArray<string>
    readonly cloning: boolean
    /** Time that computing a second of speech took while loading, seconds; absent where nobody measured. */
    readonly realTimeFactor?: number
    readonly summary: string
  }
  readonly synthesize: (
    request: SynthesizeRequest,
    out: Outlet<SynthesizeStarted, PcmChunk>,
  ) => Effect.Effect<SynthesizeEnd, EngineError>
}

// ---------------------------------------------------------------- transcription

/** One decoding window. Long audio is many windows, so that short requests slip in between. */
export interface TranscribeRequest {
  /** 16 kHz mono in [-1, 1]; at most the engine's window. */
  readonly samples: Float32Array
  /** ISO-639-1, or undefined to detect where the model can. */
  readonly language: string | undefined
  /** Context hint of the request. */
  readonly prompt: string
  /** Tokens of earlier windows of the same file, for conditioning; empty at the start. */
  readonly previousTokens: ReadonlyArray<number>
  readonly temperature: number
  /**
   * Wanted (true), not wanted (false), or left to the model (undefined): for models with a switch of their own. What
   * the model writes all the same is added to or removed by the caller (`#domain/Punctuated.ts`).
   */
  readonly punctuation: boolean | undefined
  /** Whether per-word times are wanted. */
  readonly words: boolean
  /** True when no audio follows this window. */
  readonly last: boolean
  /**
   * False decodes the window as one segment without times and consumes all of it: for one short utterance whose
   * times nobody asked for. Absent means true.
   */
  readonly timestamps?: boolean
  /**
   * Tokens of an earlier hypothesis for the start of the same window (`TranscribeEnd.tokens`). They are checked in
   * one decoder pass and only kept where a fresh decoding chooses them too. Engines may ignore it.
   */
  readonly draft?: ReadonlyArray<number>
  /**
   * Names audio that grows: of two requests with the same number, the samples of one begin with those of the other. What
   * an engine computed for one it may use for the other, where that changes nothing. Engines may ignore it.
   */
  readonly stream?: number
  /**
   * The samples may be more than one window: the engine hears as many as it can, one after the other as several requests
   * would, and the end speaks for all of them. At most `togetherSeconds` of its facts. Engines may stop after the first.
   */
  readonly together?: boolean
  /**
   * The text is a caption that will be replaced: it may be inexact where that is cheaper. For engines with `captions` in
   * their facts, with at most so much audio; others transcribe as always.
   */
  readonly caption?: boolean
}

/** As it comes to an engine process: a long file's samples lie in a ring of the node's. */
export interface TranscribeCall extends Omit<TranscribeRequest, "samples"> {
  readonly samples: Float32Array | SampleSpan
}

export interface TranscribeStarted {
  readonly language: string
}

/** Times are seconds from the start of the window. */
export interface Segment {
  readonly start: number
  readonly end: number
  /** Begins with a space where its language has them: a file's texts are joined with nothing between, then trimmed. */
  readonly text: string
  readonly tokens: ReadonlyArray<number>
  readonly temperature: number
  readonly avgLogprob: number
  readonly compressionRatio: number
  readonly noSpeechProb: number
  /** Approximate: interpolated inside the segment by length, and again where a request's punctuation changes the text. */
  readonly words?: ReadonlyArray<{ readonly word: string; readonly start: number; readonly end: number }>
  /** Of several windows in one request: the sample at which this one's begins. Absent: the first. */
  readonly windowAt?: number
  /** On the last segment of a window that others follow in the same request: samples that are finished with. */
  readonly finishedSamples?: number
}

export interface TranscribeEnd {
  readonly language: string
  /** Samples that are finished with; the next window starts there. */
  readonly consumedSamples: number
  /** Conditioning for the next window, and the bytes of a character that is not whole yet; empty after a reset. */
  readonly previousTokens: ReadonlyArray<number>
  /** All tokens of this window as the decoder chose them: the next request's `draft`. */
  readonly tokens?: ReadonlyArray<number>
}

/** Costs were measured while loading, milliseconds. */
export interface CaptionFacts {
  /** Longest audio of one request with `caption`. */
  readonly seconds: number
  /** Of such a request with half as much audio. */
  readonly captionMs: number
  /** Of a whole window. */
  readonly windowMs: number
}

export interface TranscriptionEngine {
  readonly kind: "transcription"
  readonly facts: {
    readonly slots: number
    /** Longest window, seconds. */
    readonly windowSeconds: number
    /**
     * With more audio than this in a window, what a call decodes and consumes no longer depends on what follows or on
     * `last`: a live session calls once with a little more than this and keeps the answer. Absent: `windowSeconds`.
     */
    readonly closedSeconds?: number
    /** Most audio of a request with `together`. Absent: the engine hears one window a request. */
    readonly togetherSeconds?: number
    /** Present where a request with `caption` costs less than one without. */
    readonly captions?: CaptionFacts
    readonly languages: ReadonlyArray<string>
    readonly detectsLanguage: boolean
    readonly summary: string
  }
  readonly transcribe: (
    request: TranscribeRequest,
    out: Outlet<TranscribeStarted, Segment>,
  ) => Effect.Effect<TranscribeEnd, EngineError>
}

export type Engine = TextEngine | SpeechEngine | TranscriptionEngine
export type EngineFacts = Engine["facts"]

/** What is known of an engine without loading anything, and how to load it. */
export interface EngineDescriptor {
  readonly adapter: string
  readonly kind: EngineKind
  /** Chooses the CPU threads before the load, for engines whose number is fixed with it. Called with `spec.trial` only. */
  readonly chooseThreads?: (spec: EngineSpec, trial: ThreadTrial) => Effect.Effect<ThreadChoice, EngineError>
  /** Its engines use no more CPU threads than this from the next native call on. For those with no `threads` of their own. */
  readonly limitThreads?: (most: number) => void
  readonly acquire: (spec: EngineSpec) => Effect.Effect<Engine, EngineError, Scope.Scope>
}
