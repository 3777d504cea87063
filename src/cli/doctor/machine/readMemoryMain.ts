// Entry of a thread that reads memory: repeatedly searches its buffer for a byte that is not in it.
import { parentPort, workerData } from "node:worker_threads"
import type { Reading } from "./ReadBandwidth.ts"

const { bytes, measuredMs } = workerData as { readonly bytes: number; readonly measuredMs: number }
// Filled once, so that each page is backed by memory: untouched pages all map to the same page of zeros.
const buffer = Buffer.alloc(bytes, 1)
const beganMs = performance.now()
let read = 0
do {
  buffer.indexOf(2)
  read += bytes
} while (performance.now() - beganMs < measuredMs)
parentPort?.postMessage({ bytes: read, ms: performance.now() - beganMs } satisfies Reading)
