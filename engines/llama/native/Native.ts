// What the step loop needs of a native library: evaluate tokens, sample the next ones, and keep, cut, save and restore the
// memory of sequences. LibllamaContext does it through llama.cpp's C interface.
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Llama, LlamaModel } from "node-llama-cpp"
import type { EngineError, Sampling } from "../../protocol/Engine.ts"
import type { LlamaOptions } from "../Options.ts"
import type { LaterDraw } from "../sampling/LaterDraws.ts"
import type { Biases, TokenChoice } from "../sampling/LogitSampler.ts"
import type { Score } from "../sampling/Scores.ts"
import type { Interrupt } from "./Interrupt.ts"
import type { NativeLog } from "./NativeLog.ts"

/** Rows of logits of a call that has one item, at most. Of others: one for each item. As many as the sequences of the default. */
export const mostRows = 16

/** One sequence's part of a step. */
export interface BatchItem {
  readonly sequenceId: number
  readonly position: number
  readonly tokens: ReadonlyArray<number>
  /** True if the logits of the last token are needed. */
  readonly logits: boolean
  /**
   * Indices in `tokens`, ascending, whose logits are needed besides those of the last token, at most `mostRows` together. Only
   * in a call without other items: their rows are numbered from 0, before that of the last token.
   */
  readonly rowsAt?: ReadonlyArray<number>
}

/** Rows of embeddings of one sequence, which stand in the place of tokens. */
export interface RowItem {
  readonly sequenceId: number
  /** `width` values for each row. */
  readonly rows: Float32Array<ArrayBuffer>
  /** Of each row, then, with M-RoPE, the second coordinate of each row, the third and the fourth. */
  readonly positions: Int32Array
}

/** Evaluates what is not a token. Not while a `decode` runs, and with the same failures. */
export interface RowAccess {
  /** Values of a row. */
  readonly width: number
  /** Positions of a row: 4 with M-RoPE, else 1. */
  readonly coordinates: 1 | 4
  /** Returns no logits. */
  readonly evaluate: (item: RowItem) => Promise<void>
}

export interface Sampler {
  /**
   * Samples the next token from a row of the last `decode`; -1 if there is none. Not while a `decode` runs.
   */
  readonly sample: (row: number) => Promise<number>
  /** As `sample`, a token that `choice` allows; a draw that is done later if that takes long. */
  readonly choose: (row: number, choice: TokenChoice) => number | LaterDraw
  /** The reply goes on with a token that was not sampled, which the penalties count too. */
  readonly count: (token: number) => void
  readonly dispose: () => void
}

/** An opaque state; `dispose` frees its memory. */
export interface SavedState {
  readonly sizeBytes: number
  readonly dispose: () => void
}

/** The failure of a `decode` that `interrupt` ended. */
export class Interrupted extends Error {
  constructor() {
    super("the evaluation was interrupted")
  }
}

/** What needs the logits themselves and the memory of several sequences. Not while a `decode` runs. */
interface DirectAccess {
  /** The log probability of a token in a row of the last `decode`, or in this one, with the `top` most likely tokens. */
  readonly score: (row: number | Float32Array, token: number, top: number) => Score
  /** For each of these groups of tokens the natural logarithm of the probability that the next token is one of them. */
  readonly masses: (row: number, groups: ReadonlyArray<ReadonlyArray<number>>) => ReadonlyArray<number>
  /** Makes the sequence `to` equal to `from`. Takes effect at the next `decode`. */
  readonly copy: (from: number, to: number) => void
  /** Bytes of the whole state of a sequence, which `save` may keep in part only. */
  readonly wholeBytes: (sequenceId: number) => number
  readonly saveWhole: (sequenceId: number) => Promise<SavedState>
  /** Gives an empty sequence a state of `saveWhole`; false if that failed, and then the sequence is empty. */
  readonly give: (saved: SavedState, sequenceId: number) => Promise<boolean>
}

/** Calls must not overlap, except `sample` on different rows. */
export interface NativeContext {
  /** Evaluates all items in one pass. Returns each item's row of logits, or -1. A failure leaves the sequences undefined. */
  readonly decode: (items: ReadonlyArray<BatchItem>) => Promise<ReadonlyArray<number>>
  /** Makes the running `decode` fail within one operation of its graph; on a GPU it runs to its end. */
  readonly interrupt: () => void
  readonly sampler: (sampling: Sampling, biases?: Biases) => Sampler
  readonly direct: DirectAccess
  readonly rows: RowAccess
  /** Removes the tokens from position `length` on; false if this memory cannot be cut. */
  readonly cut: (sequenceId: number, length: number, heldLength: number) => boolean
  readonly clear: (sequenceId: number) => void
  readonly save: (sequenceId: number) => Promise<SavedState>
  /** Restores a saved state of `length` tokens; false if that failed. */
  readonly restore: (saved: SavedState, length: number) => Promise<boolean>
  /** Sets the CPU threads of later evaluations. Free if the number does not change. */
  readonly setThreads: (threads: number) => void
}

export interface NativeSpec {
  readonly llama: Llama
  /** Path of the weights file. */
  readonly path: string
  readonly options: LlamaOptions
  readonly threads: number
  readonly log: NativeLog
}

/** Where the weights of a model are, and how a tower beside it is interrupted. */
export interface TowerDevice {
  readonly offloaded: boolean
  /** Paths of the native libraries of this process. */
  readonly objects: ReadonlyArray<string>
  readonly makeInterrupt: () => Interrupt
}

export interface OpenedNative {
  readonly native: NativeContext
  /** node-llama-cpp's view of the file: vocabulary, chat template, metadata. */
  readonly model: LlamaModel
  readonly parameters: number
  /** What a tower needs to compute rows for this model. */
  readonly device: TowerDevice
  /** Of one sequence: what the catalog asks for, at most what the model was trained for. */
  readonly contextTokens: number
}

/** Loads the weights and makes a context. Closing the scope frees the memory. */
export type OpenNative = (spec: NativeSpec) => Effect.Effect<OpenedNative, EngineError, Scope.Scope>
