// Keeps checkpoints off a node's event loop, on a thread of their own. Part of a node's store; the commands, which
// write a row and end, do without.
//
// Measured on two busy shared cores (2026-11): batches of 64 receipts written every 20 ms took 8 to 12 ms at the 99th
// percentile with SQLite's own checkpoints, 3 to 6 ms with this.
import { Worker } from "node:worker_threads"
import { Effect, Layer } from "effect"

/**
 * The log's length, in pages of 4 KiB, at which the writing connection itself steps in: 64 MB, which only a thread
 * that has failed lets it reach.
 */
export const lastResortPages = 16_000

const start = (filename: string) =>
  Effect.sync(() => {
    const thread = new Worker(new URL("./checkpointThread.ts", import.meta.url), { workerData: { filename } })
    // A thread that fails ends; the last resort takes over.
    thread.on("error", () => {})
    thread.unref()
    return thread
  })

const stop = (thread: Worker) =>
  Effect.callback<void>((resume) => {
    if (thread.threadId === -1) return resume(Effect.void)
    // Without a reference, waiting for it would not keep the process alive.
    thread.ref()
    thread.once("exit", () => resume(Effect.void))
    thread.postMessage("stop")
  })

export const checkpointerLayer = (filename: string): Layer.Layer<never> =>
  Layer.effectDiscard(Effect.acquireRelease(start(filename), stop))
