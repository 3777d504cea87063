// Compiles the grammars of requests on two threads, in the order of CompilationTurns, so that a user with many costly schemas delays
// another user's by none of them. What was compiled is kept for its organization. One instance for each model.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import { type CompiledGrammar, grammarBytes } from "../../grammar/CompiledGrammar.ts"
import type { Owner } from "../../protocol/Preparation.ts"
import { CompilationTurns } from "./CompilationTurns.ts"
import { CompilerThread, type CompilerThreadOptions, type Outcome, refusedWith } from "./CompilerThread.ts"
import type { Refusal } from "./GrammarThread.ts"

export interface GrammarCompilerOptions extends Pick<CompilerThreadOptions, "program" | "singleBytes"> {
  /** Processor time of one compilation. Default `compilationMs`. */
  readonly limitMs?: number
  /** Processor time of a user's compilations in a minute, those of refused requests included. Default `compilationsMs`. */
  readonly minuteMs?: number
  /** Monotonic time in milliseconds. */
  readonly nowMs?: () => number
}

/** Processor time of one compilation, and of a user's in a minute. Guesses: a usual schema takes 5 to 50 ms. */
export const compilationMs = 500
export const compilationsMs = 5_000
/** Of it, what a user may use before the schemas of others come first. A guess: some usual schemas. */
const shareMs = 100
/** While several grammars are compiled, it is looked this often who has used how much. */
const lookMs = 10

interface Job {
  readonly request: string
  readonly key: string
  readonly user: string
  readonly listen: (outcome: Outcome) => void
}

/** Bytes of all grammars that are kept, and of each refusal. Guesses. */
const keptBytes = 32 * 1024 * 1024
const refusalBytes = 1_024
/** Grammars that are compiled at the same time, each of another user. */
const threadCount = 2
const secondsOfMinute = 60

const unloaded = "the model is being unloaded"

export class GrammarCompiler<Request> {
  readonly #limitMs: number
  readonly #minuteMs: number
  readonly #nowMs: () => number
  readonly #kept = new LRUCache<string, Outcome>({
    maxSize: keptBytes,
    sizeCalculation: (outcome) =>
      "grammar" in outcome ? Math.max(grammarBytes(outcome.grammar), 1) : refusalBytes,
  })
  readonly #threads: ReadonlyArray<CompilerThread>
  readonly #turns: CompilationTurns<Job>
  /** The thread of each grammar that is compiled. */
  readonly #running = new Map<Job, CompilerThread>()
  #look: NodeJS.Timeout | undefined
  #closed = false

  constructor({
    limitMs = compilationMs,
    minuteMs = compilationsMs,
    nowMs,
    program,
    singleBytes,
  }: GrammarCompilerOptions) {
    this.#limitMs = limitMs
    this.#minuteMs = Math.max(minuteMs, limitMs)
    this.#nowMs = nowMs ?? (() => performance.now())
    this.#turns = new CompilationTurns({ minuteMs: this.#minuteMs, shareMs })
    this.#threads = Array.from(
      { length: threadCount },
      () => new CompilerThread({ limitMs, program, singleBytes }),
    )
  }

  /** The grammar of a request, which is plain JSON. Fails with the reason why it has none. */
  compile(request: Request, { organization, user }: Owner): Effect.Effect<CompiledGrammar, Refusal> {
    return Effect.callback<CompiledGrammar, Refusal>((resume) => {
      const listen = (outcome: Outcome) =>
        resume("grammar" in outcome ? Effect.succeed(outcome.grammar) : Effect.fail(outcome.refusal))
      const text = JSON.stringify(request)
      // Of the organization's own: the time of an answer does not tell which schemas others use.
      const key = createHash("sha256").update(`${organization}\n${text}`).digest("base64")
      const known = this.#kept.get(key)
      if (known !== undefined) return listen(known)
      if (this.#closed) return listen(refusedWith(unloaded))
      const job: Job = { request: text, key, user, listen }
      this.#turns.join(job)
      this.#next()
      return Effect.sync(() => {
        this.#turns.leave(job)
      })
    })
  }

  /** Ends the threads. Requests that wait fail. */
  close(): void {
    this.#closed = true
    clearInterval(this.#look)
    for (const thread of this.#threads) thread.close(unloaded)
    for (const { listen } of this.#turns.clear()) listen(refusedWith(unloaded))
  }

  /** Begins what may begin, and lets wait what has to. */
  #next(): void {
    if (this.#closed) return
    for (const [job, thread] of this.#running) this.#turns.used(job, thread.usedMs)
    for (;;) {
      const idle = this.#threads.filter(({ isBusy }) => !isBusy)
      const thread = idle.find(({ isWarm }) => isWarm) ?? idle[0]
      const job = thread === undefined ? undefined : this.#turns.shift(this.#nowMs())
      if (thread === undefined || job === undefined) break
      // An equal request may have come before it.
      const outcome = this.#kept.get(job.key) ?? this.#overspent(job.user)
      if (outcome === undefined) this.#begin(job, thread)
      else job.listen(outcome)
    }
    for (const [job, thread] of this.#running) thread.pause(this.#turns.isPaused(job, this.#nowMs()))
    if (this.#running.size > 1) this.#look ??= setInterval(() => this.#next(), lookMs).unref()
    else {
      clearInterval(this.#look)
      this.#look = undefined
    }
  }

  #begin(job: Job, thread: CompilerThread): void {
    this.#turns.begin(job)
    this.#running.set(job, thread)
    thread.compile(job.request, (outcome, usedMs, repeats) => {
      this.#running.delete(job)
      this.#turns.used(job, usedMs)
      if (repeats) this.#kept.set(job.key, outcome)
      job.listen(outcome)
      if (this.#closed) return
      // A thread that its grammar has ended starts again before its user's next grammar: the other thread is free for others.
      thread.start(() => {
        this.#turns.end(job, usedMs, this.#nowMs())
        this.#next()
      })
      this.#keepReady()
    })
  }

  /** The threads that are idle stay started, or start now: the next user's grammar does not wait for that. */
  #keepReady(): void {
    for (const thread of this.#threads) if (!thread.isBusy) thread.start(() => this.#next())
  }

  /** A refusal unless the user may use what one compilation may need. */
  #overspent(user: string): Outcome | undefined {
    const missingMs = this.#limitMs - this.#turns.leftMs(user, this.#nowMs())
    if (missingMs <= 0) return undefined
    const detail = `is new, and new schemas may take ${this.#minuteMs} ms of processor time a minute to compile; wait, or send one that was used before`
    return {
      refusal: {
        field: "",
        detail,
        retryAfterMs: Math.ceil((missingMs * secondsOfMinute * 1_000) / this.#minuteMs),
      },
    }
  }
}
