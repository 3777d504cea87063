// Compiles the grammars of requests on two threads, users in turn and one grammar of a user at a time, so that a user with many
// costly schemas delays another user's by none of them; the two threads share the processors like any others. What was compiled is kept
// for its organization. One instance for each model.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { FairQueue } from "#domain/queues/FairQueue.ts"
import { type CompiledGrammar, grammarBytes } from "../../grammar/CompiledGrammar.ts"
import type { Owner } from "../../protocol/Preparation.ts"
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
/** Users whose used time is remembered. Of more, the one that has compiled least recently is forgotten. A guess. */
const mostUsers = 10_000
const minute = 60

const unloaded = "the model is being unloaded"
const interactive = { interactive: true, background: true }

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
  /** Bounded by what the gateway admits: each job is one of its requests. */
  readonly #waiting = new FairQueue<Job>(Number.POSITIVE_INFINITY)
  /** Users with a grammar that is compiled now. */
  readonly #served = new Set<string>()
  /** Processor time that each user may still use, in ms. */
  readonly #left = new LRUCache<string, TokenBucket>({ max: mostUsers })
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
      this.#waiting.join(job, { user, urgency: "interactive", continues: true })
      this.#next()
      return Effect.sync(() => {
        this.#waiting.leave(job)
      })
    })
  }

  /** Ends the threads. Requests that wait fail. */
  close(): void {
    this.#closed = true
    for (const thread of this.#threads) thread.close(unloaded)
    for (const { listen } of this.#waiting.clear()) listen(refusedWith(unloaded))
  }

  /** Begins compilations while a thread is idle and a user waits that is not served. */
  #next(): void {
    for (;;) {
      const idle = this.#threads.filter(({ isBusy }) => !isBusy)
      const thread = idle.find(({ isWarm }) => isWarm) ?? idle[0]
      if (thread === undefined) return
      const job = this.#waiting.shift(interactive, ({ user }) => this.#served.has(user))
      if (job === undefined) return
      // An equal request may have come before it.
      const outcome = this.#kept.get(job.key) ?? this.#overspent(job.user)
      if (outcome === undefined) this.#begin(job, thread)
      else job.listen(outcome)
    }
  }

  #begin({ key, listen, request, user }: Job, thread: CompilerThread): void {
    this.#served.add(user)
    const end = () => {
      this.#served.delete(user)
      if (!this.#closed) this.#next()
    }
    thread.compile(request, (outcome, usedMs, repeats) => {
      this.#leftOf(user).spend(usedMs, this.#nowMs())
      if (repeats) this.#kept.set(key, outcome)
      listen(outcome)
      // A thread that its grammar has ended starts again before its user's next grammar: the other thread is free for others.
      if (repeats || this.#closed) end()
      else thread.start(end)
    })
  }

  #leftOf(user: string): TokenBucket {
    const known = this.#left.get(user)
    if (known !== undefined) return known
    const burst = this.#minuteMs
    const bucket = new TokenBucket({ burst, perSecond: burst / minute }, this.#nowMs())
    this.#left.set(user, bucket)
    return bucket
  }

  /** A refusal unless the user may use what one compilation may need. */
  #overspent(user: string): Outcome | undefined {
    const missingMs = this.#limitMs - this.#leftOf(user).available(this.#nowMs())
    if (missingMs <= 0) return undefined
    const detail = `is new, and new schemas may take ${this.#minuteMs} ms of processor time a minute to compile; wait, or send one that was used before`
    return {
      refusal: { field: "", detail, retryAfterMs: Math.ceil((missingMs * minute * 1_000) / this.#minuteMs) },
    }
  }
}
