// How many CPU threads a step of the text engine uses: measured with the model's own steps when it loads, by the size of
// the step, and never more than the node allows while other models work. Called by Model; the step loop does not know.
//
// llama.cpp's threads wait for each other actively, several hundred times a step. A thread whose core another process
// has taken stops all of them, so the number is lowered before the next step when another model begins to work.
import { pickThreads, type Sample } from "#domain/threads/PickThreads.ts"
import {
  fixedThreads,
  type ThreadChoice,
  type ThreadTrial,
  threadsFor,
} from "#domain/threads/ThreadChoice.ts"
import type { EngineSpec, EngineThreads } from "../../protocol/Engine.ts"
import type { BatchItem, NativeContext } from "../native/Native.ts"

/** Tokens of the measured steps: one reply, several replies, a prompt. */
const stepTokens: ReadonlyArray<number> = [1, 8, 32]

/** Time for all measured steps, about, milliseconds. */
const budgetMs = 1_000

const batchOf = (tokens: number, slots: number): ReadonlyArray<BatchItem> =>
  tokens <= slots
    ? Array.from({ length: tokens }, (_, sequenceId) => ({
        sequenceId,
        position: 0,
        tokens: [sequenceId],
        logits: true,
      }))
    : [{ sequenceId: 0, position: 0, tokens: Array.from({ length: tokens }, (_, at) => at), logits: true }]

/** Thrown into a measurement that a request interrupts. */
class Wanted extends Error {}

/** Runs steps of the model itself; they leave nothing in its sequences. */
const measure = (
  native: NativeContext,
  trial: ThreadTrial,
  slots: number,
  isWanted: () => boolean,
): Promise<ThreadChoice> => {
  const run = async (tokens: number | undefined, threads: number): Promise<Sample> => {
    if (isWanted()) throw new Wanted()
    const batch = batchOf(tokens ?? 1, slots)
    native.setThreads(threads)
    const startedMs = performance.now()
    const before = process.cpuUsage()
    await native.decode(batch)
    const { system, user } = process.cpuUsage(before)
    const ms = performance.now() - startedMs
    for (const { sequenceId } of batch) native.clear(sequenceId)
    return { ms, cpuMs: (system + user) / 1000 }
  }
  return pickThreads({ trial, sizes: stepTokens, run, budgetMs })
}

export interface SteppedContext {
  readonly native: NativeContext
  readonly threads: EngineThreads
  /** Whether the machine was too busy to measure. */
  readonly isUnsure: () => boolean
  /**
   * Measures again. No sequence may hold anything, and no other step may run; a step after `isWanted` says so it gives up
   * and leaves the choice as it is.
   */
  readonly measureAgain: (isWanted: () => boolean) => Promise<void>
}

/** The context with the right number of threads set before each step. `slots`: its sequences. */
export const stepThreads = async (
  native: NativeContext,
  spec: EngineSpec,
  slots: number,
): Promise<SteppedContext> => {
  const { trial } = spec
  let choice: ThreadChoice =
    trial === undefined
      ? fixedThreads(spec.threads, "catalog")
      : (trial.kept ?? (await measure(native, trial, slots, () => false)))
  let most = Number.POSITIVE_INFINITY
  let listener: (choice: ThreadChoice) => void = () => {}
  const isUnsure = () => choice.source === "size" && trial !== undefined && trial.counts.length > 1
  return {
    native: {
      ...native,
      decode: (items) => {
        let tokens = 0
        for (const item of items) tokens += item.tokens.length
        native.setThreads(Math.max(1, Math.min(most, threadsFor(choice, tokens))))
        return native.decode(items)
      },
    },
    threads: {
      choice: () => choice,
      onChoice: (told) => {
        listener = told
      },
      limit: (threads) => {
        // A number in the catalog is the operator's: it stands.
        if (choice.source !== "catalog") most = threads
      },
    },
    isUnsure,
    measureAgain: async (isWanted) => {
      if (trial === undefined) return
      try {
        choice = await measure(native, trial, slots, isWanted)
      } catch (cause) {
        if (!(cause instanceof Wanted)) throw cause
      }
      if (!isUnsure()) listener(choice)
    },
  }
}
