// Whose grammar is compiled when. Users are served in turn, one grammar of each at a time, and those who have compiled little in the last
// minute before the others: what one user has costs another user's first schemas nothing. Plain data, no threads.
import { LRUCache } from "lru-cache"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { FairQueue } from "#domain/queues/FairQueue.ts"

interface CompilationTerms {
  /** Processor time of a user's compilations in a minute, milliseconds. */
  readonly minuteMs: number
  /** A user who has used more than this of it is heavy. */
  readonly shareMs: number
}

interface Compilation {
  readonly user: string
}

/** Users whose used time is remembered. Of more, the one that has compiled least recently is forgotten. A guess. */
const mostUsers = 10_000
const minute = 60

const interactive = { interactive: true, background: true }

export class CompilationTurns<Job extends Compilation> {
  readonly #terms: CompilationTerms
  /** Bounded by what the gateway admits: each job is one of its requests. */
  readonly #waiting = new FairQueue<Job>(Number.POSITIVE_INFINITY)
  /** What is compiled, with the processor time that it has used, in the order in which it began. */
  readonly #running = new Map<Job, number>()
  /** Processor time that each user may still use, in ms, without what is compiled now. */
  readonly #left = new LRUCache<string, TokenBucket>({ max: mostUsers })

  constructor(terms: CompilationTerms) {
    this.#terms = terms
  }

  join(job: Job): void {
    this.#waiting.join(job, { user: job.user, urgency: "interactive", continues: true })
  }

  leave(job: Job): void {
    this.#waiting.leave(job)
  }

  /** Removes all that wait. */
  clear(): ReadonlyArray<Job> {
    return this.#waiting.clear()
  }

  /**
   * Removes and returns the job that is next where a thread is idle: of a user who is not heavy; of a heavy one only while no other
   * heavy user's is compiled. Undefined if none may begin.
   */
  shift(nowMs: number): Job | undefined {
    const served = new Set([...this.#running.keys()].map(({ user }) => user))
    const light = this.#waiting.shift(
      interactive,
      ({ user }) => served.has(user) || this.#isHeavy(user, nowMs),
    )
    if (light !== undefined) return light
    for (const user of served) if (this.#isHeavy(user, nowMs)) return undefined
    return this.#waiting.shift(interactive, ({ user }) => served.has(user))
  }

  begin(job: Job): void {
    this.#running.set(job, 0)
  }

  /** What a compilation has used so far. */
  used(job: Job, ms: number): void {
    if (this.#running.has(job)) this.#running.set(job, ms)
  }

  /** It has ended after so much processor time, and its thread is ready for another. */
  end(job: Job, usedMs: number, nowMs: number): void {
    this.#running.delete(job)
    this.#leftOf(job.user, nowMs).spend(usedMs, nowMs)
  }

  /** Whether a compilation waits now: a heavy user's does while another user's goes on, and of several heavy users' the first goes on. */
  isPaused(job: Job, nowMs: number): boolean {
    if (!this.#isHeavy(job.user, nowMs)) return false
    for (const other of this.#running.keys()) {
      if (other === job) continue
      if (!this.#isHeavy(other.user, nowMs)) return true
    }
    const [first] = this.#running.keys()
    return first !== job
  }

  /** Processor time that a user may use now, milliseconds. */
  leftMs(user: string, nowMs: number): number {
    let usedMs = 0
    for (const [job, ms] of this.#running) if (job.user === user) usedMs += ms
    return this.#leftOf(user, nowMs).available(nowMs) - usedMs
  }

  #isHeavy(user: string, nowMs: number): boolean {
    return this.#terms.minuteMs - this.leftMs(user, nowMs) > this.#terms.shareMs
  }

  #leftOf(user: string, nowMs: number): TokenBucket {
    const known = this.#left.get(user)
    if (known !== undefined) return known
    const burst = this.#terms.minuteMs
    const bucket = new TokenBucket({ burst, perSecond: burst / minute }, nowMs)
    this.#left.set(user, bucket)
    return bucket
  }
}
