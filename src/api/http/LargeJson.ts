// Parses JSON bodies that are too large for the event loop, on one thread for the process, started with the first of
// them. Decoding and parsing 8 MB held the loop for up to 40 ms. The value comes back in pieces, each in a tick of its own: the
// next is sent when this thread has asked for it. Pictures in a body come back as bytes in memory of their own, which costs the
// loop nothing, whatever their size.
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { BodyTooLarge } from "#domain/wire/Errors.ts"
import { maxJsonBytes, type Parsed } from "#domain/wire/JsonText.ts"
import { shared } from "#http/JoinedBytes.ts"
import { JsonAssembly, type JsonPiece } from "./JsonPieces.ts"

interface LargeBody {
  readonly bytes: Uint8Array
  /** Whether `data:` URLs of pictures in messages are decoded. */
  readonly pictures: boolean
}

export type ToLargeJson =
  | (LargeBody & { readonly id: number })
  /** `wanted`: the next piece; otherwise no more of them. */
  | { readonly id: number; readonly wanted: boolean }

export type FromLargeJson =
  | { readonly id: number; readonly problem: string }
  /** More than `maxJsonBytes` besides its pictures. */
  | { readonly id: number; readonly isTooLarge: true }
  | { readonly id: number; readonly piece: JsonPiece; readonly isLast: boolean }

/** Idle time after which the thread ends; its next start takes about 30 ms. A guess. */
const idleMs = 60_000

interface Waiting extends LargeBody {
  readonly resume: (outcome: Effect.Effect<Parsed, BodyTooLarge>) => void
  readonly assembly: JsonAssembly
  /** False if the client has disconnected. */
  readonly isWanted: boolean
  /** The thread has parsed it. */
  isParsed: boolean
}

/** In the order in which they came. At most one entry a request in progress; the bodies' own limits bound the bytes. */
const waiting = new Map<number, Waiting>()
let nextId = 0
let thread: Worker | undefined
let idle: NodeJS.Timeout | undefined

const end = (ended: Worker): void => {
  if (thread !== ended) return
  thread = undefined
  // The thread parses one body at a time, so the oldest one has ended it. Values that are on their way are lost as well.
  const [first, ...others] = [...waiting].filter(([, { isParsed }]) => !isParsed)
  for (const [id, { isParsed, resume }] of waiting) {
    if (!isParsed && id !== first?.[0]) continue
    waiting.delete(id)
    resume(Effect.succeed({ problem: "could not be parsed" }))
  }
  if (others.length === 0) return
  thread = start()
  for (const [id, { bytes, pictures }] of others) send(thread, { id, bytes, pictures })
}

const finish = (id: number, outcome: Effect.Effect<Parsed, BodyTooLarge>): void => {
  waiting.get(id)?.resume(outcome)
  waiting.delete(id)
}

const tooLarge = Effect.fail(new BodyTooLarge({ limitBytes: maxJsonBytes, besidesPictures: true }))

const receive = (from: Worker, message: FromLargeJson): void => {
  const { id } = message
  const entry = waiting.get(id)
  if (entry === undefined) return
  if ("isTooLarge" in message) return finish(id, tooLarge)
  if ("problem" in message) return finish(id, Effect.succeed({ problem: message.problem }))
  entry.isParsed = true
  entry.assembly.add(message.piece)
  if (message.isLast) return finish(id, Effect.succeed({ value: entry.assembly.value }))
  send(from, { id, wanted: entry.isWanted })
  if (!entry.isWanted) waiting.delete(id)
}

const send = (to: Worker, message: ToLargeJson): void => to.postMessage(message)

const start = (): Worker => {
  const started = new Worker(new URL("./largeJsonMain.ts", import.meta.url), {
    name: "large-json",
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: {},
    // A body is at most 32 MB and 100,000 values, so this limit should never be reached. A guess.
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  })
  started.unref()
  started.on("message", (message: FromLargeJson) => {
    receive(started, message)
    if (waiting.size === 0) rest(started)
  })
  // `exit` follows.
  started.on("error", () => {})
  started.on("exit", () => end(started))
  return started
}

/** Ends the thread when no body has come for a while. */
const rest = (resting: Worker): void => {
  clearTimeout(idle)
  idle = setTimeout(() => {
    if (waiting.size > 0 || thread !== resting) return
    thread = undefined
    void resting.terminate()
  }, idleMs).unref()
}

/** Largest body that is copied to the thread at once: 2 ms. A guess from the time of 4 MB in JoinedBytes. */
const copiedAtOnce = 4_000_000

/** The body's value, or what is wrong with it. With `pictures`, bytes stand for the `data:` URLs in its messages. */
export const parseLarge = (bytes: Uint8Array, pictures = false): Effect.Effect<Parsed, BodyTooLarge> =>
  bytes.length <= copiedAtOnce || bytes.buffer instanceof SharedArrayBuffer
    ? parseOnThread(bytes, pictures)
    : Effect.flatMap(shared([bytes]), (copy) => parseOnThread(copy, pictures))

const parseOnThread = (bytes: Uint8Array, pictures: boolean): Effect.Effect<Parsed, BodyTooLarge> =>
  Effect.callback<Parsed, BodyTooLarge>((resume) => {
    const id = nextId++
    const assembly = new JsonAssembly()
    waiting.set(id, { bytes, pictures, resume, assembly, isWanted: true, isParsed: false })
    thread ??= start()
    send(thread, { id, bytes, pictures })
    // The entry keeps its position: the thread may be parsing it.
    return Effect.sync(() => {
      const entry = waiting.get(id)
      if (entry !== undefined) waiting.set(id, { ...entry, resume: () => {}, isWanted: false })
    })
  })
