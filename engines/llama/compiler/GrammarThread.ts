// The thread that compiles grammars: its side of the messages. The program of the thread says what a request means.
import { getPriority, setPriority } from "node:os"
import { parentPort } from "node:worker_threads"
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
  /** 1 for each byte that is a token by itself. */
  readonly singleBytes: Uint8Array
}

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

/** A refusal's field and detail as an exception, for programs that find it deep in their calls. */
export class Refused extends Error {
  readonly field: string

  constructor(field: string, detail: string) {
    super(detail)
    this.field = field
  }
}

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

/** A program's translation of a request to a shape. It calls `watch` with each field before it translates it. */
type ShapeOf<Request> = (request: Request, watch: (field: string) => void) => Shape

/**
 * Serves the thread that it is called in. `shapeOf` gets the parsed JSON of a request and throws `Refused` for one that has no
 * shape; anything else that it throws ends the thread.
 */
export const serveGrammars = <Request>(shapeOf: ShapeOf<Request>): void => {
  const port = parentPort
  if (port === null) throw new Error("serveGrammars is for worker threads")
  lowerPriority()
  const send = (message: FromGrammarThread, transfer: ReadonlyArray<ArrayBuffer> = []) =>
    port.postMessage(message, [...transfer])

  /** The field that is worked on; empty before the first. */
  let field = ""
  let beganMs = 0
  const used = (): number => threadMs() - beganMs

  const answer = ({ id, request, singleBytes }: ToGrammarThread): void => {
    const watch = (next: string | undefined) => {
      if (next === undefined || next === field) return
      field = next
      send({ kind: "at", id, field, atMs: used() })
    }
    beganMs = threadMs()
    field = ""
    const { fieldOf, shape } = shapeOf(JSON.parse(request) as Request, watch)
    const compiled = compile(shape, singleBytes, (rule) => watch(fieldOf(rule)))
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
      const refused =
        cause instanceof RangeError ? new Refused(field, "is nested too deeply or is too large") : cause
      if (!(refused instanceof Refused)) throw cause
      const refusal = { field: refused.field, detail: refused.message }
      send({ kind: "refused", id: message.id, refusal, atMs: used() })
    }
  })
  send({ kind: "ready" })
}
