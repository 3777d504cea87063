// Measures how fast memory is read, by one thread and by one thread on each physical core. Each thread searches a
// buffer larger than any cache for a byte that is not in it; the C library does that as fast as memory delivers.

import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { rounded } from "#harness/report/Figure.ts"
import type { Machine } from "../report/Document.ts"

const mebibyte = 1024 * 1024
/** Buffer of each thread; larger if the last-level cache is. */
const leastBytes = 64 * mebibyte
const mostBytes = 256 * mebibyte
const measuredMs = 150

export interface Reading {
  readonly bytes: number
  readonly ms: number
}

const oneThread = (bytes: number): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const worker = new Worker(new URL("./readMemoryMain.ts", import.meta.url), {
      workerData: { bytes, measuredMs },
    })
    worker.once("message", (reading: Reading) => {
      resume(Effect.succeed(reading.bytes / reading.ms / 1e6))
      void worker.terminate()
    })
    // Without memory for the buffer, or without a thread, the result is unknown.
    worker.once("error", () => resume(Effect.succeed(0)))
    return Effect.promise(() => worker.terminate())
  })

/** 10^9 bytes a second. null if it could not be measured. */
export const readBandwidth = (
  cores: number,
  cacheBytes: number,
): Effect.Effect<Machine["read_gb_per_second"]> =>
  Effect.gen(function* () {
    const bytes = Math.min(mostBytes, Math.max(leastBytes, cacheBytes * 2))
    const one = yield* oneThread(bytes)
    // 16 threads are enough: the memory's channels are saturated with fewer.
    const threads = Array.from({ length: Math.min(cores, 16) }, () => oneThread(bytes))
    const all = cores <= 1 ? [one] : yield* Effect.all(threads, { concurrency: "unbounded" })
    const sum = all.reduce((total, each) => total + each, 0)
    const known = (value: number) => (value > 0 ? rounded(value) : null)
    return { one_thread: known(one), all_cores: all.includes(0) ? null : known(sum) }
  })
