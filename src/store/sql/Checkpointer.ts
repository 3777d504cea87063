// Runs SQLite's checkpoints on a thread, off the node's event loop. Commands, which write a row and end, do without it.
//
// Measured on two busy shared cores (2026-11): batches of 64 receipts written every 20 ms took 8 to 12 ms at the 99th
// percentile with SQLite's own checkpoints, 3 to 6 ms with this thread.
import { Worker } from "node:worker_threads"
import { Effect, Layer } from "effect"

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

const stop = (thread: Worker) =>
  Effect.callback<void>((resume) => {
    if (thread.threadId === -1) return resume(Effect.void)
    // An unreferenced thread would not keep the process alive until it has ended.
    thread.ref()
    thread.once("exit", () => resume(Effect.void))
    thread.postMessage("stop")
  })

export const checkpointerLayer = (filename: string): Layer.Layer<never> =>
  Layer.effectDiscard(Effect.acquireRelease(start(filename), stop))
