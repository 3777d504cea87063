// How many CPU threads a step of the text engine uses: measured with the model's own steps when it loads, by the size of
// the step, and never more than the node allows while other models work. Called by Model; the step loop does not know.
//
// llama.cpp's threads wait for each other actively, several hundred times a step. A thread whose core another process
// has taken stops all of them, so the number is lowered before the next step when another model begins to work.
import { pickThreads, type Sample } from "#domain/threads/PickThreads.ts"
import { fixedThreads, type ThreadChoice, threadsFor } from "#domain/threads/ThreadChoice.ts"
import type { EngineSpec, EngineThreads } from "../Engine.ts"
import type { BatchItem, NativeContext } from "./native/Addon.ts"

/** Tokens of the measured steps: one reply, several replies, a prompt. */
const stepTokens: ReadonlyArray<number> = [1, 8, 32]

/** Time for all measured steps, about, milliseconds: a second or two for models of billions of parameters. */
const budgetMs = 1_500

const batchOf = (tokens: number, slots: number): ReadonlyArray<BatchItem> =>
  tokens <= slots
    ? Array.from({ length: tokens }, (_, sequenceId) => ({
        sequenceId,
        position: 0,
        tokens: [sequenceId],
        logits: true,
      }))
    : [{ sequenceId: 0, position: 0, tokens: Array.from({ length: tokens }, (_, at) => at), logits: true }]

/** Runs steps of the model itself; they leave nothing in its sequences. */
const measure = (native: NativeContext, spec: EngineSpec, slots: number): Promise<ThreadChoice> => {
  const { trial } = spec
  if (trial === undefined) return Promise.resolve(fixedThreads(spec.threads, "catalog"))
  if (trial.kept !== undefined) return Promise.resolve(trial.kept)
  const run = async (tokens: number | undefined, threads: number): Promise<Sample> => {
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
}

/** The context with the right number of threads set before each step. `slots`: its sequences. */
export const stepThreads = async (
  native: NativeContext,
  spec: EngineSpec,
  slots: number,
): Promise<SteppedContext> => {
  const choice = await measure(native, spec, slots)
  let most = Number.POSITIVE_INFINITY
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
      choice,
      limit: (threads) => {
        // A number in the catalog is the operator's: it stands.
        if (choice.source !== "catalog") most = threads
      },
    },
  }
}
