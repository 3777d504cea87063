// Continuous batching: runs native calls in sequence, each for one prompt, or for equally many tokens of
// several replies, until no job is left. Only this file uses the native context, so its calls never overlap. StepPlan
// decides the next call.
//
// A step is one call, one sampled token for each sequence that is due, and one `push` for each token. Cancels, pauses and
// new jobs take effect between steps.
import * as Exit from "effect/Exit"
import type { EngineError } from "../../protocol/Engine.ts"
import { type BatchItem, Interrupted, type NativeContext, type SavedState } from "../native/Native.ts"
import { type LaterDraw, LaterDraws } from "../sampling/LaterDraws.ts"
import { openSampler, startFollowers } from "./Followers.ts"
import { failed, itemOf, Job, type JobTerms, type Outcome } from "./Job.ts"
import { readEnd, refusalOf, sharedBy } from "./Reading.ts"
import { SequenceMemory, type SequenceMemoryOptions } from "./SequenceMemory.ts"
import type { Slot } from "./Slots.ts"
import type { SpareRows } from "./SpareRows.ts"
import { isCommon, type Step, type StepCosts, StepPlan, type Work } from "./StepPlan.ts"

/** Every vocabulary has it. */
const anyToken = 0

interface StepLoopOptions extends SequenceMemoryOptions {
  readonly costs: StepCosts
  /** Share of the time for prompts beside running replies, see PromptPace. */
  readonly promptShare: number
  /** Learnt from the calls if absent. */
  readonly spareRows?: SpareRows
}

export class StepLoop {
  readonly #native: NativeContext
  readonly #memory: SequenceMemory
  readonly #plan: StepPlan
  readonly #laterDraws = new LaterDraws()
  /** Jobs that take part in the steps, at most one for each slot. */
  readonly #running = new Set<Job>()
  #driver: Promise<void> | undefined
  /** Jobs of the running native call. */
  #evaluating: ReadonlyArray<Job> = []
  #stepEnded: PromiseWithResolvers<void> | undefined
  /** Set while every job waits for rows of pictures. */
  #idle: PromiseWithResolvers<void> | undefined
  /** True if something has changed since the works of the last step were listed. */
  #changed = false
  #order = 0
  #closed = false

  constructor(options: StepLoopOptions) {
    this.#native = options.native
    this.#memory = new SequenceMemory(options)
    const { costs, promptShare: share, spareRows } = options
    this.#plan = new StepPlan({ share, costs, spareRows })
  }

  /** While on, no checkpoints are kept. */
  lean(on: boolean): void {
    this.#memory.lean(on)
  }

  /** Ids of the most neighbouring sequences that hold nothing, ascending. */
  unused(): ReadonlyArray<number> {
    return this.#memory.unused()
  }

  /** Empties all sequences, so that later prompts reuse nothing. No job may be open. */
  empty(): void {
    this.#memory.empty()
  }

  /**
   * Admits a job. The caller admits at most as many jobs as slots. `leader`: a job with the same prompt that has not run yet;
   * the prompt is evaluated once for both.
   */
  open(terms: JobTerms, leader?: Job): Job {
    const job = new Job(this.#order++, terms)
    if (leader !== undefined) {
      leader.followers.push(job)
      job.waits = true
    }
    return job
  }

  /** Runs the job until it ends or its reader falls behind; then `report` is called once. */
  run(job: Job, report: (exit: Exit.Exit<Outcome, EngineError>) => void): void {
    if (this.#closed) {
      report(Exit.interrupt())
      return
    }
    job.listen(report)
    this.#running.add(job)
    this.#wake()
    this.#driver ??= this.#drive()
  }

  #wake(): void {
    this.#changed = true
    this.#idle?.resolve()
    this.#idle = undefined
  }

  /** Resolves when the job's sequence is free: at once, or at the end of the running step. */
  async release(job: Job): Promise<void> {
    job.abandon()
    this.#running.delete(job)
    job.pictures.close()
    for (const follower of job.followers) this.#running.delete(follower)
    this.#wake()
    if (this.#evaluating.length === 1 && this.#evaluating[0] === job) this.#native.interrupt()
    if (this.#stepEnded !== undefined) await this.#stepEnded.promise
    job.sampler?.dispose()
    job.sampler = undefined
    if (job.slot === undefined) return
    job.slot.busy = false
    job.slot = undefined
  }

  /** Ends every job as interrupted. Resolves when the native context is no longer in use. */
  async close(): Promise<void> {
    this.#closed = true
    for (const job of this.#running) job.report(Exit.interrupt())
    for (const job of this.#running) job.pictures.close()
    this.#running.clear()
    this.#wake()
    this.#native.interrupt()
    await this.#driver
    this.#memory.close()
  }

  async #drive(): Promise<void> {
    while (this.#running.size > 0) {
      this.#stepEnded = Promise.withResolvers()
      let worked = true
      try {
        worked = await this.#step()
      } catch (defect) {
        // E.g. an outlet threw, or a sequence cannot be cleared: every job has to end.
        for (const job of this.#running) this.#leave(job, Exit.die(defect))
      }
      this.#stepEnded.resolve()
      this.#stepEnded = undefined
      // Let continuations of this step run first: a job that they release must not be in the next step.
      await Promise.resolve()
      if (worked || this.#changed) continue
      this.#idle = Promise.withResolvers()
      await this.#idle.promise
    }
    this.#driver = undefined
  }

  /** One native call and the sampling and delivery that follow it; false if there was nothing to do. */
  async #step(): Promise<boolean> {
    for (const job of this.#running) if (job.slot === undefined && !job.waits) await this.#admit(job)
    this.#changed = false
    const step = this.#plan.next(this.#works())
    if (step === undefined) return false
    if (step.kind === "prompt" && (await this.#readRows(this.#jobOf(step.id), step))) return true
    const jobs = (step.kind === "replies" ? step.ids : [step.id]).map((id) => this.#jobOf(id))
    const items = jobs.map((job) => itemOf(job, step.take))
    const spare =
      step.kind === "replies" ? this.#memory.spare(step.ids, this.#plan.rowsOf(step) - jobs.length) : []
    const started = performance.now()
    let rows: ReadonlyArray<number>
    try {
      this.#evaluating = jobs
      rows = await this.#evaluate(items, spare)
    } catch (cause) {
      for (const [at, job] of jobs.entries()) {
        if (cause instanceof Interrupted) this.#memory.takeBack(job.slot!, items[at]!.tokens.length)
        else this.#fail(job, cause)
      }
      return true
    } finally {
      this.#evaluating = []
    }
    // More rows of logits than other prompts have would teach the plan nothing.
    if (!isCommon(step) && items[0]!.rowsAt === undefined)
      this.#plan.observe(step, performance.now() - started)
    for (const [at, job] of jobs.entries()) await this.#evaluated(job, items[at]!.tokens)
    for (const [at, job] of jobs.entries()) this.#readLogits(job, items[at]!.rowsAt)
    await this.#draw(jobs, rows)
    if (isCommon(step)) this.#plan.observe(step, performance.now() - started, jobs.length + spare.length)
    return true
  }

  /** The items in one call with a row of each spare sequence, which loses it again. Returns the rows of the items. */
  async #evaluate(
    items: ReadonlyArray<BatchItem>,
    spare: ReadonlyArray<Slot<SavedState>>,
  ): Promise<ReadonlyArray<number>> {
    if (spare.length === 0) return this.#native.decode(items)
    const below = spare.filter(({ id }) => id < items[0]!.sequenceId)
    const rowOf = ({ id, tokens }: Slot<SavedState>): BatchItem => ({
      sequenceId: id,
      position: tokens.length,
      tokens: [anyToken],
      logits: true,
    })
    const all = [...below.map(rowOf), ...items, ...spare.slice(below.length).map(rowOf)]
    try {
      const rows = await this.#native.decode(all)
      return rows.slice(below.length, below.length + items.length)
    } finally {
      for (const slot of spare) this.#memory.takeBack(slot, 1)
    }
  }

  /** Gives a reading its rows of this call, and ends it behind the last one unless a reply follows. */
  #readLogits(job: Job, rowsAt: ReadonlyArray<number> | undefined): void {
    const { reading } = job.terms
    if (reading === undefined || rowsAt === undefined || !job.wanted) return
    try {
      reading.rows(rowsAt.length)
    } catch (cause) {
      return this.#fail(job, cause)
    }
    if (job.pending.length === 0 && reading.end !== undefined) this.#leave(job, Exit.succeed(reading.end))
  }

  /** A step of a prompt whose next part is a picture; false if it is text. */
  async #readRows(job: Job, step: Extract<Step, { kind: "prompt" }>): Promise<boolean> {
    const { rows } = this.#native
    const slot = job.slot!
    const read = rows && job.pictures.item(slot, step.take, rows)
    if (read === undefined) return false
    if (read.jump !== undefined && slot.jumps.at(-1)?.from !== read.jump.from) slot.jumps.push(read.jump)
    const started = performance.now()
    try {
      this.#evaluating = [job]
      await rows!.evaluate(read.item)
    } catch (cause) {
      if (cause instanceof Interrupted) this.#memory.takeBack(slot, step.take)
      else this.#fail(job, cause)
      return true
    } finally {
      this.#evaluating = []
    }
    this.#plan.observe(step, performance.now() - started)
    await this.#evaluated(job, job.pending.slice(0, step.take))
    return true
  }

  /** Asks for the rows that the job's prompt needs next. */
  #wantRows(job: Job): void {
    if (!job.wanted) return
    job.pictures.want(job.slot!.tokens.length, (failure) => {
      if (failure !== undefined) this.#fail(job, failure)
      this.#wake()
    })
  }

  /** Finds a sequence for the job, cuts it to the part shared with the prompt, and calls `started`. */
  async #admit(job: Job): Promise<void> {
    const { owner, prompt, reading, reply, shared } = job.terms
    const reused = reading === undefined ? prompt : sharedBy(prompt, reading)
    const wanted = this.#memory.wanted(reused, owner, shared)
    const chosen = this.#memory.take(wanted)
    if (chosen === undefined) return this.#fail(job, new Error("more requests than sequences"))
    job.slot = chosen.slot
    if (reading?.unless !== undefined) {
      const { given, keep: kept, slot } = chosen
      const expectedMs = this.#plan.promptMs(prompt.length - kept)
      // How much another owner's sequence holds must not be told.
      const lost =
        slot.tokens.length === 0
          ? 0
          : slot.owner === owner
            ? slot.tokens.length - (given ? 0 : kept)
            : Infinity
      const refused = refusalOf(reading.unless, { expectedMs, lost, kept })
      if (refused !== undefined) {
        reply.begin({ promptTokens: prompt.length, cachedTokens: 0 })
        reading.unless.refused(refused)
        return this.#leave(job, Exit.succeed(readEnd))
      }
    }
    try {
      const kept = await this.#memory.begin(chosen, wanted)
      job.pending = [...prompt.slice(kept), ...reply.lead]
      openSampler(this.#native, job)
      const { count } = job.pictures
      const imageTokens = count === 0 ? {} : { imageTokens: count }
      if (job.wanted) reply.begin({ promptTokens: prompt.length, cachedTokens: kept, ...imageTokens })
      if (count > 0) this.#wantRows(job)
    } catch (cause) {
      this.#fail(job, cause)
    }
  }

  #works(): ReadonlyArray<Work> {
    const works: Array<Work> = []
    for (const job of this.#running) {
      const { slot, order, pending, replying, beganBefore, pauseAfter } = job
      if (slot !== undefined && !job.waitsForRows && !job.drawing)
        works.push({
          id: slot.id,
          order,
          pending: pending.length,
          replying,
          beganBefore,
          pauseAfter,
          pictured: job.terms.spans.length > 0,
        })
    }
    return works
  }

  #jobOf(id: number): Job {
    for (const job of this.#running) if (job.slot?.id === id) return job
    throw new Error(`no job on sequence ${id}`)
  }

  async #evaluated(job: Job, tokens: ReadonlyArray<number>): Promise<void> {
    const slot = job.slot!
    for (const token of tokens) slot.tokens.push(token)
    job.pending = tokens === job.pending ? [] : job.pending.slice(tokens.length)
    if (!job.replying && job.terms.spans.length > 0) this.#wantRows(job)
    const isShared = slot.tokens.length === job.terms.shared
    if (!job.replying && (isShared || job.terms.marks.includes(slot.tokens.length))) {
      try {
        if (isShared) await this.#memory.share(slot)
        if (job.terms.marks.includes(slot.tokens.length)) await this.#memory.save(slot)
      } catch (cause) {
        this.#fail(job, cause)
      }
    }
  }

  /**
   * Samples one token for each job whose pending tokens are all evaluated, then delivers all of them together, so that one
   * message carries all tokens of the call. Sampling may overlap because the rows of replies with equally many tokens, and the
   * only row of a prompt, lie in the order of the batch: otherwise the first call would sort them, without a lock.
   */
  async #draw(jobs: ReadonlyArray<Job>, rows: ReadonlyArray<number>): Promise<void> {
    const due: Array<Job> = []
    const rowOf: Array<number> = []
    for (const [at, job] of jobs.entries()) {
      if (rows[at]! < 0 || !job.wanted) continue
      due.push(job)
      rowOf.push(rows[at]!)
      if (job.followers.length === 0) continue
      for (const follower of startFollowers(this.#native, this.#memory, job)) {
        due.push(follower)
        rowOf.push(rows[at]!)
      }
    }
    const drawn = await Promise.all(due.map((job, at) => this.#drawOne(job, rowOf[at]!)))
    for (const [at, job] of due.entries()) {
      const token = drawn[at]
      if (token === undefined || !job.wanted) continue
      if (typeof token === "number") this.#deliver(job, token)
      else this.#drawLater(job, token)
    }
  }

  /** The sampled token; undefined if sampling failed, which fails the job. */
  async #drawOne(job: Job, row: number): Promise<number | LaterDraw | undefined> {
    try {
      const sampler = job.sampler!
      const { choice } = job.terms.reply
      const token = choice === undefined ? await sampler.sample(row) : sampler.choose(row, choice)
      return typeof token === "number" ? this.#scored(job, row, token) : token
    } catch (cause) {
      this.#fail(job, cause)
    }
    return undefined
  }

  /** @throws if no token was drawn */
  #scored(job: Job, row: number | Float32Array, token: number): number {
    const { scored } = job.terms.reply
    if (token < 0) throw new Error("the sampler drew no token")
    if (scored !== undefined) job.score = this.#native.direct.score(row, token, scored)
    return token
  }

  /** The others go on without the job until its token is drawn. */
  #drawLater(job: Job, draw: LaterDraw): void {
    job.drawing = true
    const ended = (): void => {
      job.drawing = false
      this.#wake()
    }
    this.#laterDraws.add({
      draw,
      wanted: () => job.wanted && this.#running.has(job),
      done: (token) => {
        ended()
        this.#deliver(job, this.#scored(job, draw.row, token))
      },
      failed: (cause) => {
        ended()
        // A native call may run: the sequence, which is as it should be, must stay.
        this.#leave(job, Exit.fail(failed(cause)))
      },
    })
  }

  #deliver(job: Job, token: number): void {
    const { out, reply } = job.terms
    if (!job.replying) job.beganBefore = this.#order
    job.replying = true
    const next = reply.take(token, job.score)
    if ("finishReason" in next) return this.#leave(job, Exit.succeed(next))
    job.pending = next
    for (let at = 1; at < next.length; at++) job.sampler?.count(next[at]!)
    if (out.paused()) this.#leave(job, Exit.succeed("paused"))
  }

  #leave(job: Job, exit: Exit.Exit<Outcome, EngineError>): void {
    this.#running.delete(job)
    job.report(exit)
  }

  /** Fails the job. The content of its sequence is uncertain, so it is not reused. */
  #fail(job: Job, cause: unknown): void {
    if (job.slot !== undefined) this.#memory.forget(job.slot)
    job.pictures.close()
    const exit = Exit.fail(failed(cause))
    this.#leave(job, exit)
    for (const follower of job.followers) this.#leave(follower, exit)
  }
}
