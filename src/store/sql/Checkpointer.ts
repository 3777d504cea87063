// Runs SQLite's checkpoints, and the cleaning of its files after deletions, on a thread, off the node's event loop. Commands, which
// write a row and end, do without it.
//
// Measured on two busy shared cores (2026-11): batches of 64 receipts written every 20 ms took 8 to 12 ms at the 99th
// percentile with SQLite's own checkpoints, 3 to 6 ms with this thread.
import { Worker } from "node:worker_threads"
import { Effect, Layer } from "effect"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { Compaction } from "./Compaction.ts"
import type { Cleaned, ToCheckpointThread } from "./checkpointThread.ts"

/**
 * Length of the log, in pages of 4 KiB, at which the writing connection makes a checkpoint itself: 64 MB, which the log
 * only reaches if the thread has failed.
 */
export const lastResortPages = 16_000

const start = (filename: string) =>
  Effect.sync(() => {
    const thread = new Worker(new URL("./checkpointThread.ts", import.meta.url), { workerData: { filename } })
    // After an error the thread ends, and the writing connection makes the checkpoints.
    thread.on("error", () => {})
    thread.unref()
    return thread
  })

const post = (thread: Worker, message: ToCheckpointThread): void => thread.postMessage(message)

const stop = (thread: Worker) =>
  Effect.callback<void>((resume) => {
    if (thread.threadId === -1) return resume(Effect.void)
    // An unreferenced thread would not keep the process alive until it has ended.
    thread.ref()
    thread.once("exit", () => resume(Effect.void))
    post(thread, { type: "stop" })
  })

const compactionOn = (thread: Worker, filename: string): Compaction => {
  let asked = 0
  const failed = (problem: string) =>
    Effect.fail(
      new StoreUnavailable({
        place: filename,
        problem: `deleted rows may have left traces in it: ${problem}`,
      }),
    )
  return {
    clean: (deleted) =>
      Effect.callback<void, StoreUnavailable>((resume) => {
        const id = ++asked
        const leave = () => void thread.off("message", onMessage).off("exit", onEnd)
        const end = (outcome: Effect.Effect<void, StoreUnavailable>) => {
          leave()
          resume(outcome)
        }
        const onEnd = () => end(failed("its thread has ended"))
        const onMessage = (message: Cleaned) => {
          if (message.id === id) end(message.problem === undefined ? Effect.void : failed(message.problem))
        }
        if (thread.threadId === -1) return onEnd()
        thread.on("message", onMessage).on("exit", onEnd)
        post(thread, { type: "clean", id, deleted })
        return Effect.sync(leave)
      }),
    emptyLogSoon: () => post(thread, { type: "empty log" }),
  }
}

export const checkpointerLayer = (filename: string): Layer.Layer<never> =>
  Layer.effect(
    Compaction,
    Effect.map(Effect.acquireRelease(start(filename), stop), (thread) => compactionOn(thread, filename)),
  )
