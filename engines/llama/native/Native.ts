// What the step loop needs of a native library: evaluate tokens, draw the next ones, and keep, cut, save and restore the
// memory of sequences. Implemented by Addon (node-llama-cpp's own binding) and by LibllamaContext (llama.cpp's C
// interface); StepLoop, Job and Checkpoints know only these types, not which one runs.
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Llama, LlamaModel } from "node-llama-cpp"
import type { EngineError, Sampling } from "../../protocol/Engine.ts"
import type { LlamaOptions } from "../Options.ts"
import type { NativeLog } from "./NativeLog.ts"

/** One sequence's part of a step. */
export interface BatchItem {
  readonly sequenceId: number
  readonly position: number
  readonly tokens: ReadonlyArray<number>
  /** Whether the last token's logits are wanted. */
  readonly logits: boolean
}

export interface Sampler {
  /** Draws the next token from a row of the last `decode`; -1 where the row has no number. Not while a `decode` runs. */
  readonly sample: (row: number) => Promise<number>
  readonly dispose: () => void
}

/** Opaque; `dispose` gives its memory back. */
export interface SavedState {
  readonly sizeBytes: number
  readonly dispose: () => void
}

/** What `decode` fails with after `interrupt`. */
export class Interrupted extends Error {
  constructor() {
    super("the evaluation was interrupted")
  }
}

/** Calls must not overlap: one at a time, except `sample` on different rows. */
export interface NativeContext {
  /** Evaluates all items in one pass. Per item the row of its logits, or -1. Fails without an effect that can be relied on. */
  readonly decode: (items: ReadonlyArray<BatchItem>) => Promise<ReadonlyArray<number>>
  /** Makes the `decode` under way fail within an operation of its graph, where the implementation can; else it runs to its end. */
  readonly interrupt: () => void
  readonly sampler: (sampling: Sampling) => Sampler
  /** Forgets the tokens from `length` on; false where this memory cannot be cut. */
  readonly cut: (sequenceId: number, length: number, heldLength: number) => boolean
  readonly clear: (sequenceId: number) => void
  readonly save: (sequenceId: number) => Promise<SavedState>
  /** Back to a saved state of `length` tokens; false when it could not be. */
  readonly restore: (saved: SavedState, length: number) => Promise<boolean>
  /** CPU threads of the evaluations that follow. Costs nothing where the number stays the same. */
  readonly setThreads: (threads: number) => void
}

export interface NativeSpec {
  readonly llama: Llama
  /** Of the weights. */
  readonly path: string
  readonly options: LlamaOptions
  readonly threads: number
  readonly log: NativeLog
}

export interface OpenedNative {
  readonly native: NativeContext
  /** node-llama-cpp's view of the file: vocabulary, chat template, metadata. */
  readonly model: LlamaModel
  readonly parameters: number
  /** Of one sequence: what was asked for, or less where the model was trained for less. */
  readonly contextTokens: number
}

/** Loads the weights and makes a context; closing the scope gives the memory back. */
export type OpenNative = (spec: NativeSpec) => Effect.Effect<OpenedNative, EngineError, Scope.Scope>
