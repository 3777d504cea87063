// How many CPU threads a step of the text engine uses: measured with the model's own steps, by the size of the step, and at most
// what the node allows while other models compute.
//
// llama.cpp's threads wait for each other by spinning, several hundred times a step. If another process takes one thread's
// core, all threads stall, so the number is lowered before the next step when another model begins to compute, and while calls get
// less processor time than their threads could use, see Disturbance.
import { pickThreads, type Sample } from "#domain/threads/PickThreads.ts"
import {
  fixedThreads,
  type ThreadChoice,
  type ThreadTrial,
  threadsFor,
} from "#domain/threads/ThreadChoice.ts"
import type { EngineSpec, EngineThreads } from "../../protocol/Engine.ts"
import { type BatchItem, Interrupted, type NativeContext } from "../native/Native.ts"
import { Disturbance } from "./Disturbance.ts"

/** What evaluates the steps. A context of an embedding model has no rows. */
type Evaluator = Pick<NativeContext, "clear" | "decode" | "setThreads"> & Partial<Pick<NativeContext, "rows">>

/** Tokens of the measured steps: one reply, several replies, a prompt. */
const stepTokens: ReadonlyArray<number> = [1, 8, 32]

/** Sequences that a measurement needs, if the context has as many. */
export const measuredSequences = 8

/** Milliseconds for all measured steps, approximately. */
const budgetMs = 1_000

const batchOf = (tokens: number, sequences: ReadonlyArray<number>): ReadonlyArray<BatchItem> =>
  tokens <= sequences.length
    ? sequences.slice(0, tokens).map((sequenceId) => ({
        sequenceId,
        position: 0,
        tokens: [sequenceId],
        logits: true,
      }))
    : [
        {
          sequenceId: sequences[0] ?? 0,
          position: 0,
          tokens: Array.from({ length: tokens }, (_, at) => at),
          logits: true,
        },
      ]

/** Ends a measurement when a request arrives. */
export class Wanted extends Error {}

/** Whether a measurement failed because a request arrived: between two calls, or in one that was interrupted. */
export const isEndedFor = (cause: unknown, isWanted: () => boolean): boolean =>
  cause instanceof Wanted || (cause instanceof Interrupted && isWanted())

/** Runs steps of the model itself and clears its sequences afterwards. */
const measure = (
  native: Evaluator,
  trial: ThreadTrial,
  sequences: ReadonlyArray<number>,
  isWanted: () => boolean,
): Promise<ThreadChoice> => {
  const run = async (tokens: number | undefined, threads: number): Promise<Sample> => {
    if (isWanted()) throw new Wanted()
    const batch = batchOf(tokens ?? 1, sequences)
    native.setThreads(threads)
    const startedMs = performance.now()
    const before = process.cpuUsage()
    try {
      await native.decode(batch)
    } finally {
      for (const { sequenceId } of batch) native.clear(sequenceId)
    }
    const { system, user } = process.cpuUsage(before)
    const ms = performance.now() - startedMs
    return { ms, cpuMs: (system + user) / 1000 }
  }
  return pickThreads({ trial, sizes: stepTokens, run, budgetMs })
}

export interface SteppedContext<N extends Evaluator = NativeContext> {
  readonly native: N
  readonly threads: EngineThreads
  /** CPU threads for an evaluation of this many tokens or rows now. */
  readonly threadsOf: (tokens: number) => number
  /** True if they were not measured yet, or the machine was too busy for it. */
  readonly isUnsure: () => boolean
  /**
   * Measures them with these sequences, neighbours that must be empty. No other step may run. Once `isWanted` returns true it stops
   * after the running step and keeps the previous choice.
   */
  readonly measure: (sequences: ReadonlyArray<number>, isWanted: () => boolean) => Promise<void>
}

/**
 * The context with the best number of threads set before each step, measured now unless it is known. `slots`: its sequences.
 */
export const measuredThreads = async <N extends Evaluator>(
  native: N,
  spec: EngineSpec,
  slots: number,
): Promise<SteppedContext<N>> => {
  const { trial } = spec
  const measured =
    trial === undefined || trial.kept !== undefined
      ? undefined
      : await measure(native, trial, [...new Array(slots).keys()], () => false)
  return stepThreads(native, spec, measured)
}

/** The same with a number by size until it is measured, which the caller does later. */
export const stepThreads = <N extends Evaluator>(
  native: N,
  spec: EngineSpec,
  measured?: ThreadChoice,
): SteppedContext<N> => {
  const { trial } = spec
  let choice: ThreadChoice =
    trial === undefined
      ? fixedThreads(spec.threads, "catalog")
      : (measured ?? trial.kept ?? fixedThreads(trial.otherwise, "size"))
  let most = Number.POSITIVE_INFINITY
  let listener: (choice: ThreadChoice) => void = () => {}
  /** On a GPU, and for small weights, there is one number; one in the catalog is the operator's choice and is kept. */
  const hasCounts = trial !== undefined && trial.counts.length > 1
  const isUnsure = () => choice.source === "size" && hasCounts
  const threadsOf = (tokens: number) => Math.max(1, Math.min(most, threadsFor(choice, tokens)))
  const { rows } = native
  const disturbance = new Disturbance()
  /** A call on as many threads as are best now. */
  const timed = async <A>(tokens: number, call: () => Promise<A>): Promise<A> => {
    const wanted = threadsOf(tokens)
    const judges = wanted > 1 && hasCounts
    const threads = judges ? disturbance.threads(wanted) : wanted
    native.setThreads(threads)
    if (!judges || threads === 1) return call()
    const startedMs = performance.now()
    const before = process.cpuUsage()
    const result = await call()
    const { system, user } = process.cpuUsage(before)
    disturbance.called(threads, performance.now() - startedMs, (system + user) / 1000)
    return result
  }
  return {
    native: {
      ...native,
      ...(rows && {
        rows: {
          ...rows,
          evaluate: (item) => timed(item.rows.length / rows.width, () => rows.evaluate(item)),
        },
      }),
      decode: (items) => {
        let tokens = 0
        for (const item of items) tokens += item.tokens.length
        return timed(tokens, () => native.decode(items))
      },
    },
    threadsOf,
    threads: {
      choice: () => choice,
      onChoice: (told) => {
        listener = told
      },
      limit: (threads) => {
        // A number in the catalog is the operator's choice and is kept.
        if (choice.source !== "catalog") most = threads
      },
    },
    isUnsure,
    measure: async (sequences, isWanted) => {
      if (trial === undefined) return
      try {
        choice = await measure(native, trial, sequences, isWanted)
      } catch (cause) {
        if (!isEndedFor(cause, isWanted)) throw cause
      }
      if (!isUnsure()) listener(choice)
    },
  }
}
