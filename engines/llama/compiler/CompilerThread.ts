// One thread that compiles grammars, one at a time, each in a limited time. It starts with its first grammar, ends when it has been
// idle for a while, and is replaced after a compilation that it did not survive.
import { Worker } from "node:worker_threads"
import type { CompiledGrammar } from "../../grammar/CompiledGrammar.ts"
import type { FromGrammarThread, Refusal, ToGrammarThread } from "./GrammarThread.ts"

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
 * whose processors have 20 programs to run is hardly of use.
 */
const mostWaiting = 20
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

  /** Compiles the JSON text of a request. Not while it is busy. */
  compile(request: string, done: Done): void {
    this.#work = { id: this.#ids++, request, done, times: new FieldTimes() }
    if (this.#worker === undefined) this.#start()
    else if (this.#ready) this.#send(this.#work)
  }

  /** Starts it before its next compilation, and tells when it has started or could not. It is busy until then. */
  start(started: () => void): void {
    if (this.#ready) return started()
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
    const message: ToGrammarThread = { id, request, singleBytes: this.#options.singleBytes }
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
        const restMs = limitMs - usedMs
        const tookMs = performance.now() - beganMs
        if (restMs > 0 && tookMs < limitMs * mostWaiting) return again(restMs)
        this.#fail(`takes longer than ${limitMs} ms to compile`, usedMs)
      }
      const again = (ms: number): void => {
        if (this.#work?.id === id) this.#limit(Math.max(ms, 10), () => void look().catch(ended))
      }
      again(limitMs)
    } catch {
      ended()
    }
  }

  #start(): void {
    const worker = new Worker(this.#options.program, {
      name: "grammars",
      execArgv: ["--disable-warning=ExperimentalWarning"],
      env: {},
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
      this.#work = undefined
      this.#rest()
      work.done(
        message.kind === "made" ? { grammar: message.grammar } : { refusal: message.refusal },
        message.atMs,
        true,
      )
    }
  }

  #rest(): void {
    this.#limit(idleMs, () => this.#stop())
  }

  /** The compilation has ended the thread or took too long; the next one begins on a new thread. */
  #fail(detail: string, usedMs: number): void {
    const work = this.#work
    const started = this.#started
    this.#started = undefined
    this.#stop()
    work?.done(refusedWith(detail, work.times.longest(usedMs)), usedMs, false)
    started?.()
  }

  #limit(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(then, ms).unref()
  }
}
