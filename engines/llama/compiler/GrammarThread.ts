// The thread that compiles grammars: its side of the messages. The program of the thread says what a request means.
import { getPriority, setPriority } from "node:os"
import { parentPort, workerData } from "node:worker_threads"
import { type Checkpoint, noCheckpoint } from "../../grammar/Checkpoint.ts"
import { type CompiledGrammar, grammarBytes } from "../../grammar/CompiledGrammar.ts"
import { compile } from "../../grammar/compile/Compile.ts"
import type { ReplyShape } from "../../grammar/Expression.ts"

/** Why no grammar was made of a request. */
export interface Refusal {
  /** The field of the request, with its path; empty if the request as a whole is the problem. */
  readonly field: string
  readonly detail: string
  /** Present: the same request may succeed after this time. */
  readonly retryAfterMs?: number
}

export interface ToGrammarThread {
  readonly id: number
  /** JSON text. */
  readonly request: string
  /** Processor time of the compilation. */
  readonly limitMs: number
  /** 1 for each byte that is a token by itself. */
  readonly singleBytes: Uint8Array
}

/** The numbers that a thread shares with its owner, by index: an array of 32 bits each, which is its `workerData`. */
export const shared = {
  /** 1 while the owner lets the thread wait. */
  paused: 0,
  /** Microseconds of processor time of the present compilation, at its last checkpoint. */
  usedUs: 1,
} as const
export const sharedNumbers = 2

export type FromGrammarThread =
  | { readonly kind: "ready" }
  | (FromCompilation & {
      readonly id: number
      /** Processor time of the thread since it has the request. */
      readonly atMs: number
    })

type FromCompilation =
  /** From now on the thread works on this field of the request. */
  | { readonly kind: "at"; readonly field: string }
  | { readonly kind: "made"; readonly grammar: CompiledGrammar }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  /** It has used its processor time. */
  | { readonly kind: "overran" }

/** A refusal's field and detail as an exception, for programs that find it deep in their calls. */
export class Refused extends Error {
  readonly field: string

  constructor(field: string, detail: string) {
    super(detail)
    this.field = field
  }
}

/** Ends a compilation at a checkpoint. */
class Overrun extends Error {}

/** Processor time of this thread. Node's types lack the function that it calls. */
export const threadMs = (): number => {
  const { threadCpuUsage } = process as unknown as { readonly threadCpuUsage: () => NodeJS.CpuUsage }
  const { system, user } = threadCpuUsage()
  return (system + user) / 1_000
}

/** Most bytes of a grammar's tables. A guess; a schema of 256 KB takes a few. */
const mostBytes = 32 * 1024 * 1024

export interface Shape {
  readonly shape: ReplyShape
  /** The field that a rule was made of, to name it if the rule cannot be compiled. Undefined: of the request as a whole. */
  readonly fieldOf: (rule: string) => string | undefined
}

/**
 * How much lower than the engine's other threads: a costly schema delays the request that has it, and not the replies of others, whose
 * compute threads wait for each other at every layer. At 5 it gets a quarter of a core that they need too, and all of an idle one.
 */
const lowerBy = 5
const lowest = 19

/** Only this thread gets a lower priority. On systems other than Linux the call would lower the whole process's, so nothing is done. */
const lowerPriority = (): void => {
  if (process.platform === "linux") setPriority(0, Math.min(lowest, getPriority(0) + lowerBy))
}

/** Units of work (Checkpoint) between two looks at the owner's wishes: half a millisecond, in patterns up to 50 (measured). */
const sliceUnits = 2_000

/** What a program tells while it translates a request. */
export interface Progress {
  /** The field that it translates next. */
  readonly at: (field: string) => void
  readonly checkpoint: Checkpoint
}

export const unwatched: Progress = { at: () => {}, checkpoint: noCheckpoint }

/** A program's translation of a request to a shape. */
type ShapeOf<Request> = (request: Request, progress: Progress) => Shape

/**
 * Serves the thread that it is called in. `shapeOf` gets the parsed JSON of a request and throws `Refused` for one that has no
 * shape; anything else that it throws ends the thread.
 */
export const serveGrammars = <Request>(shapeOf: ShapeOf<Request>): void => {
  const port = parentPort
  if (port === null) throw new Error("serveGrammars is for worker threads")
  lowerPriority()
  const numbers = workerData as Int32Array
  const send = (message: FromGrammarThread, transfer: ReadonlyArray<ArrayBuffer> = []) =>
    port.postMessage(message, [...transfer])

  /** The field that is worked on; empty before the first. */
  let field = ""
  let beganMs = 0
  const used = (): number => threadMs() - beganMs

  const answer = ({ id, limitMs, request, singleBytes }: ToGrammarThread): void => {
    const at = (next: string | undefined) => {
      if (next === undefined || next === field) return
      field = next
      send({ kind: "at", id, field, atMs: used() })
    }
    let units = 0
    const checkpoint: Checkpoint = (more) => {
      units += more
      if (units < sliceUnits) return
      units = 0
      const usedMs = used()
      Atomics.store(numbers, shared.usedUs, Math.round(usedMs * 1_000))
      if (usedMs >= limitMs) throw new Overrun()
      while (Atomics.load(numbers, shared.paused) === 1) Atomics.wait(numbers, shared.paused, 1)
    }
    beganMs = threadMs()
    field = ""
    const { fieldOf, shape } = shapeOf(JSON.parse(request) as Request, { at, checkpoint })
    const compiled = compile(shape, singleBytes, (rule) => at(fieldOf(rule)), checkpoint)
    if ("problem" in compiled) throw new Refused(field, compiled.problem)
    const { grammar } = compiled
    if (grammarBytes(grammar) > mostBytes)
      throw new Refused(field, `takes more than ${mostBytes / 2 ** 20} MB as a grammar`)
    const buffers = Object.values(grammar).flatMap((table: unknown) =>
      ArrayBuffer.isView(table) && table.buffer instanceof ArrayBuffer ? [table.buffer] : [],
    )
    send({ kind: "made", id, grammar, atMs: used() }, buffers)
  }

  port.on("message", (message: ToGrammarThread) => {
    try {
      answer(message)
    } catch (cause) {
      if (cause instanceof Overrun) return send({ kind: "overran", id: message.id, atMs: used() })
      const refused =
        cause instanceof RangeError ? new Refused(field, "is nested too deeply or is too large") : cause
      if (!(refused instanceof Refused)) throw cause
      const refusal = { field: refused.field, detail: refused.message }
      send({ kind: "refused", id: message.id, refusal, atMs: used() })
    }
  })
  send({ kind: "ready" })
}
