// Parses JSON bodies that are too large for the event loop, on one thread a process, started when the first of them
// comes. Called by JsonBody. Decoding and parsing 8 MB held the loop for up to 40 ms; taking the finished value over
// costs it 3 (measured).
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import type { Parsed } from "./JsonText.ts"

export interface ToLargeJson {
  readonly id: number
  readonly bytes: Uint8Array
}

export interface FromLargeJson {
  readonly id: number
  readonly parsed: Parsed
}

/** Of the thread without work, after which it ends; its next start takes about 30 ms. A guess. */
const idleMs = 60_000

type Resume = (outcome: Effect.Effect<Parsed>) => void

/** At most one entry a request in progress; the bodies' own limits bound the bytes. */
const waiting = new Map<number, Resume>()
let nextId = 0
let thread: Worker | undefined
let idle: NodeJS.Timeout | undefined

const end = (ended: Worker): void => {
  if (thread !== ended) return
  thread = undefined
  const orphans = [...waiting.values()]
  waiting.clear()
  for (const resume of orphans) resume(Effect.die(new Error("the thread for large JSON bodies ended")))
}

const start = (): Worker => {
  const started = new Worker(new URL("./largeJsonMain.ts", import.meta.url), {
    name: "large-json",
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: {},
    // A body is at most 8 MB and 100,000 values; this is for the day that is wrong. A guess.
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  })
  started.unref()
  started.on("message", ({ id, parsed }: FromLargeJson) => {
    waiting.get(id)?.(Effect.succeed(parsed))
    waiting.delete(id)
    if (waiting.size === 0) rest(started)
  })
  // `exit` follows.
  started.on("error", () => {})
  started.on("exit", () => end(started))
  return started
}

/** Ends the thread when nothing has come for a while. */
const rest = (resting: Worker): void => {
  clearTimeout(idle)
  idle = setTimeout(() => {
    if (waiting.size > 0 || thread !== resting) return
    thread = undefined
    void resting.terminate()
  }, idleMs).unref()
}

/** The body's value, or what is wrong with it. Dies when the thread does. */
export const parseLarge = (bytes: Uint8Array): Effect.Effect<Parsed> =>
  Effect.callback<Parsed>((resume) => {
    const id = nextId++
    waiting.set(id, resume)
    thread ??= start()
    const message: ToLargeJson = { id, bytes }
    thread.postMessage(message)
    return Effect.sync(() => waiting.delete(id))
  })
