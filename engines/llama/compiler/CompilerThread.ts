// One thread that compiles grammars, one at a time, each in a limited time; its owner may let it wait meanwhile. It starts with its
// first grammar, ends when it has been idle for a while, and is replaced after a compilation that it did not survive.
import { Worker } from "node:worker_threads"
import type { CompiledGrammar } from "../../grammar/CompiledGrammar.ts"
import {
  type FromGrammarThread,
  type Refusal,
  shared,
  sharedNumbers,
  type ToGrammarThread,
} from "./GrammarThread.ts"

export interface CompilerThreadOptions {
  /** The program of the thread; it calls `serveGrammars`. */
  readonly program: URL
  /** Of the model's vocabulary: 1 for each byte that is a token by itself. */
  readonly singleBytes: Uint8Array
  /** Processor time of one compilation. */
  readonly limitMs: number
}

export type Outcome = { readonly grammar: CompiledGrammar } | { readonly refusal: Refusal }

/** `usedMs`: processor time of the compilation. `repeats`: another one would end in the same way, whatever else the machine does. */
type Done = (outcome: Outcome, usedMs: number, repeats: boolean) => void

/**
 * A compilation may take this many times its processor time, which it needs where other work has the processors. A guess: a machine
 * whose processors have 60 programs to run is hardly of use.
 */
const mostWaiting = 60
/** Processor time beyond the limit after which the thread is ended: it ends a compilation itself, unless that reaches no checkpoint. */
const graceMs = 100
/** Time in which the thread has to start. It loads a few files. */
const startMs = 10_000
/** Idle time after which the thread ends. A guess. */
const idleMs = 60_000

/** A thread whose processor time can be read, also while it computes: Node's Worker, whose types lack this method. */
interface TimedThread {
  readonly cpuUsage: (before?: NodeJS.CpuUsage) => Promise<NodeJS.CpuUsage>
}

/** A thread that has ended cannot be asked; its end is an event of its own. */
const ended = (): void => {}

export const refusedWith = (detail: string, field = ""): Outcome => ({ refusal: { field, detail } })

const tooLong = (limitMs: number): string => `takes longer than ${limitMs} ms to compile`

/** It got too little processor time, because other work or the schemas of others had it. */
const starved: Outcome = {
  refusal: {
    field: "",
    detail: "could not be compiled in time, because the processors are busy; try again",
    retryAfterMs: 1_000,
  },
}

/** Processor time of the thread for each field of a request, in ms. */
class FieldTimes {
  readonly #spent = new Map<string, number>()
  #field = ""
  #sinceMs = 0

  at(field: string, atMs: number): void {
    this.#spent.set(this.#field, (this.#spent.get(this.#field) ?? 0) + atMs - this.#sinceMs)
    this.#field = field
    this.#sinceMs = atMs
  }

  /** The field that took the longest, if the thread was stopped at this time. */
  longest(endMs: number): string {
    this.at(this.#field, endMs)
    const [longest] = [...this.#spent].toSorted(([, a], [, b]) => b - a)
    return longest?.[0] ?? ""
  }
}

interface Work {
  readonly id: number
  readonly request: string
  readonly done: Done
  readonly times: FieldTimes
}

export class CompilerThread {
  readonly #options: CompilerThreadOptions
  #worker: Worker | undefined
  #ready = false
  #work: Work | undefined
  /** Called when it has started; undefined where that is not awaited. */
  #started: (() => void) | undefined
  #ids = 0
  #timer: NodeJS.Timeout | undefined
  /** Shared with the present worker. */
  #numbers: Int32Array<ArrayBufferLike> = new Int32Array(0)

  constructor(options: CompilerThreadOptions) {
    this.#options = options
  }

  get isBusy(): boolean {
    return this.#work !== undefined || this.#started !== undefined
  }

  /** True if it is started: starting takes a while. */
  get isWarm(): boolean {
    return this.#ready
  }

  /** Processor time of the present compilation, as of a few milliseconds ago. */
  get usedMs(): number {
    return this.#work === undefined ? 0 : (this.#numbers[shared.usedUs] ?? 0) / 1_000
  }

  /** The present compilation waits at its next checkpoint, or goes on. */
  pause(waits: boolean): void {
    const { length } = this.#numbers
    if (length === 0 || Atomics.exchange(this.#numbers, shared.paused, waits ? 1 : 0) === Number(waits))
      return
    if (!waits) Atomics.notify(this.#numbers, shared.paused)
  }

  /** Compiles the JSON text of a request. Not while it is busy. */
  compile(request: string, done: Done): void {
    this.#work = { id: this.#ids++, request, done, times: new FieldTimes() }
    if (this.#worker === undefined) this.#start()
    else if (this.#ready) this.#send(this.#work)
  }

  /** Starts it before its next compilation, and tells when it has started or could not. It is busy until then. */
  start(started: () => void): void {
    if (this.#ready) {
      this.#rest()
      return started()
    }
    this.#started = started
    if (this.#worker === undefined) this.#start()
  }

  /** Ends the thread. A compilation is given up with this reason. */
  close(detail: string): void {
    this.#fail(detail, 0)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    const worker = this.#worker
    this.#worker = undefined
    this.#work = undefined
    this.#ready = false
    void worker?.terminate()
  }

  #send({ id, request }: Work): void {
    const { limitMs, singleBytes } = this.#options
    const message: ToGrammarThread = { id, request, limitMs, singleBytes }
    Atomics.store(this.#numbers, shared.usedUs, 0)
    this.pause(false)
    this.#worker?.postMessage(message)
    void this.#watch(id)
  }

  /** Ends the compilation when it has used its processor time, or far more time without having got that. */
  async #watch(id: number): Promise<void> {
    const thread = this.#worker as (Worker & TimedThread) | undefined
    if (thread === undefined) return
    const { limitMs } = this.#options
    const beganMs = performance.now()
    try {
      // Answered by a thread that computes, too.
      const before = await thread.cpuUsage()
      const look = async (): Promise<void> => {
        const { system, user } = await thread.cpuUsage(before)
        if (this.#work?.id !== id) return
        const usedMs = (system + user) / 1_000
        const restMs = limitMs + graceMs - usedMs
        if (restMs <= 0) return this.#fail(tooLong(limitMs), usedMs)
        if (performance.now() - beganMs >= limitMs * mostWaiting) return this.#end(starved, usedMs)
        again(restMs)
      }
      const again = (ms: number): void => {
        if (this.#work?.id === id) this.#limit(Math.max(ms, 10), () => void look().catch(ended))
      }
      again(limitMs + graceMs)
    } catch {
      ended()
    }
  }

  #start(): void {
    this.#numbers = new Int32Array(new SharedArrayBuffer(sharedNumbers * Int32Array.BYTES_PER_ELEMENT))
    const worker = new Worker(this.#options.program, {
      name: "grammars",
      execArgv: ["--disable-warning=ExperimentalWarning"],
      env: {},
      workerData: this.#numbers,
      // Far above what the limits of time and size need. A guess.
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    })
    this.#worker = worker
    worker.unref()
    worker.on("message", (message: FromGrammarThread) => {
      if (this.#worker === worker) this.#read(message)
    })
    // `exit` follows.
    worker.on("error", () => {})
    worker.on("exit", () => {
      // How long it has computed is not known any more.
      if (this.#worker === worker)
        this.#fail("could not be compiled", this.#ready ? this.#options.limitMs : 0)
    })
    this.#limit(startMs, () => this.#fail("could not be compiled, because the compiler did not start", 0))
  }

  #read(message: FromGrammarThread): void {
    const work = this.#work
    if (message.kind === "ready") {
      this.#ready = true
      if (work === undefined) this.#rest()
      else this.#send(work)
      const started = this.#started
      this.#started = undefined
      started?.()
    } else if (message.id !== work?.id) return
    else if (message.kind === "at") work.times.at(message.field, message.atMs)
    else {
      const { atMs } = message
      this.#work = undefined
      this.#rest()
      if (message.kind === "made") work.done({ grammar: message.grammar }, atMs, true)
      else if (message.kind === "refused") work.done({ refusal: message.refusal }, atMs, true)
      else work.done(refusedWith(tooLong(this.#options.limitMs), work.times.longest(atMs)), atMs, false)
    }
  }

  #rest(): void {
    this.#limit(idleMs, () => this.#stop())
  }

  /** The compilation has ended the thread or took too long; the next one begins on a new thread. */
  #fail(detail: string, usedMs: number): void {
    this.#end(refusedWith(detail, this.#work?.times.longest(usedMs)), usedMs)
  }

  #end(outcome: Outcome, usedMs: number): void {
    const work = this.#work
    const started = this.#started
    this.#started = undefined
    this.#stop()
    work?.done(outcome, usedMs, false)
    started?.()
  }

  #limit(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(then, ms).unref()
  }
}
