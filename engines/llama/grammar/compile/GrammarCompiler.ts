// Compiles grammars on a thread, one after the other, each in a limited time. What was compiled is kept by the hash of its
// request, and equal requests that wait are compiled once. One instance for each model.
import { createHash } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import { type CompiledGrammar, grammarBytes } from "../CompiledGrammar.ts"
import type { FromGrammarThread, Refusal, ToGrammarThread } from "./GrammarThread.ts"

export interface GrammarCompilerOptions {
  /** The program of the thread; it calls `serveGrammars`. */
  readonly program: URL
  /** Of the model's vocabulary: 1 for each byte that is a token by itself. */
  readonly singleBytes: Uint8Array
  /** Processor time of one compilation. Default 500 ms. */
  readonly limitMs?: number
}

type Outcome = { readonly grammar: CompiledGrammar } | { readonly refusal: Refusal }

interface Job {
  readonly request: string
  readonly key: string
  /** Called with the outcome. Empty if every caller has left. */
  readonly listeners: Set<(outcome: Outcome) => void>
}

/** Bytes of all grammars that are kept, and of each refusal. Guesses. */
const keptBytes = 32 * 1024 * 1024
const refusalBytes = 1_024
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

const refusedWith = (detail: string, field = ""): Outcome => ({ refusal: { field, detail } })

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

export class GrammarCompiler<Request> {
  readonly #options: GrammarCompilerOptions
  readonly #limitMs: number
  readonly #kept = new LRUCache<string, Outcome>({
    maxSize: keptBytes,
    sizeCalculation: (outcome) =>
      "grammar" in outcome ? Math.max(grammarBytes(outcome.grammar), 1) : refusalBytes,
  })
  /** By key, in the order in which they are compiled; the first one is with the thread if that is ready. */
  readonly #jobs = new Map<string, Job>()
  #thread: Worker | undefined
  #ready = false
  /** Number of the job that the thread works on; undefined if it is idle. */
  #working: { readonly id: number; readonly job: Job; readonly times: FieldTimes } | undefined
  #ids = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: GrammarCompilerOptions) {
    this.#options = options
    this.#limitMs = options.limitMs ?? 500
  }

  /** The grammar of a request, which is plain JSON. Fails with the reason why it has none. */
  compile(request: Request): Effect.Effect<CompiledGrammar, Refusal> {
    return Effect.callback<CompiledGrammar, Refusal>((resume) => {
      const listen = (outcome: Outcome) =>
        resume("grammar" in outcome ? Effect.succeed(outcome.grammar) : Effect.fail(outcome.refusal))
      const text = JSON.stringify(request)
      const key = createHash("sha256").update(text).digest("base64")
      const known = this.#kept.get(key)
      if (known !== undefined) return listen(known)
      const before = this.#jobs.get(key)
      if (before === undefined && this.#closed) return listen(refusedWith("the model is being unloaded"))
      const job = before ?? { request: text, key, listeners: new Set() }
      job.listeners.add(listen)
      this.#jobs.set(key, job)
      this.#next()
      return Effect.sync(() => {
        job.listeners.delete(listen)
      })
    })
  }

  /** Ends the thread. Requests that wait fail. */
  close(): void {
    this.#closed = true
    this.#stop()
    for (const job of [...this.#jobs.values()]) this.#finish(job, refusedWith("the model is being unloaded"))
  }

  #next(): void {
    if (this.#working !== undefined) return
    const job = this.#jobs.values().next().value
    if (job === undefined) {
      this.#limit(idleMs, () => this.#stop())
      return
    }
    if (job.listeners.size === 0) {
      this.#jobs.delete(job.key)
      this.#next()
      return
    }
    if (this.#thread === undefined) this.#start()
    if (!this.#ready) return
    const id = this.#ids++
    this.#working = { id, job, times: new FieldTimes() }
    const message: ToGrammarThread = { id, request: job.request, singleBytes: this.#options.singleBytes }
    this.#thread?.postMessage(message)
    void this.#watch(id)
  }

  /** Ends the compilation when it has used its processor time, or far more time without having got that. */
  async #watch(id: number): Promise<void> {
    const thread = this.#thread as (Worker & TimedThread) | undefined
    if (thread === undefined) return
    const beganMs = performance.now()
    try {
      // Answered by a thread that computes, too.
      const before = await thread.cpuUsage()
      const look = async (): Promise<void> => {
        const { system, user } = await thread.cpuUsage(before)
        if (this.#working?.id !== id) return
        const usedMs = (system + user) / 1_000
        const restMs = this.#limitMs - usedMs
        const tookMs = performance.now() - beganMs
        if (restMs > 0 && tookMs < this.#limitMs * mostWaiting) return again(restMs)
        this.#fail(`takes longer than ${this.#limitMs} ms to compile`, usedMs)
      }
      const again = (ms: number): void => {
        if (this.#working?.id === id) this.#limit(Math.max(ms, 10), () => void look().catch(ended))
      }
      again(this.#limitMs)
    } catch {
      ended()
    }
  }

  #start(): void {
    const thread = new Worker(this.#options.program, {
      name: "grammars",
      execArgv: ["--disable-warning=ExperimentalWarning"],
      env: {},
      // Far above what the limits of time and size need. A guess.
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    })
    this.#thread = thread
    thread.unref()
    thread.on("message", (message: FromGrammarThread) => {
      if (this.#thread === thread) this.#read(message)
    })
    // `exit` follows.
    thread.on("error", () => {})
    thread.on("exit", () => {
      if (this.#thread === thread) this.#fail("could not be compiled")
    })
    this.#limit(startMs, () => this.#fail("could not be compiled, because the compiler did not start"))
  }

  #read(message: FromGrammarThread): void {
    if (message.kind === "at") {
      if (message.id === this.#working?.id) this.#working.times.at(message.field, message.atMs)
      return
    }
    if (message.kind === "ready") this.#ready = true
    else if (message.id === this.#working?.id) {
      const { job } = this.#working
      this.#working = undefined
      const outcome: Outcome =
        message.kind === "made" ? { grammar: message.grammar } : { refusal: message.refusal }
      this.#kept.set(job.key, outcome)
      this.#finish(job, outcome)
    }
    this.#next()
  }

  /** The first job has ended the thread or took too long: `atMs` of processor time. The next thread goes on with the others. */
  #fail(detail: string, atMs = 0): void {
    const job = this.#working?.job ?? this.#jobs.values().next().value
    const field = this.#working?.times.longest(atMs)
    this.#stop()
    if (job !== undefined) this.#finish(job, refusedWith(detail, field))
    this.#next()
  }

  #finish(job: Job, outcome: Outcome): void {
    this.#jobs.delete(job.key)
    for (const listen of job.listeners) listen(outcome)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    const thread = this.#thread
    this.#thread = undefined
    this.#working = undefined
    this.#ready = false
    void thread?.terminate()
  }

  #limit(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(then, ms).unref()
  }
}
