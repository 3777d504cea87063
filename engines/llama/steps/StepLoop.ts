// Continuous batching: one native call after the other, each for one prompt or for a token of several replies, until no
// job is left. Called by LlamaGguf, which owns the fibers; here is the one place where the native context is used, so
// that its calls never overlap. Which call comes next is decided in StepPlan. Knows no request, no template and no HTTP.
//
// A step is one call, one draw for each sequence that has a next token, and one `push` a token. Cancels, pauses and new
// jobs take effect between steps.
import * as Exit from "effect/Exit"
import { EngineError, type GenerateEnd } from "../../protocol/Engine.ts"
import { type BatchItem, Interrupted, type NativeContext } from "../native/Native.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import { Job, type JobTerms, type Outcome } from "./Job.ts"
import { SequenceMemory, type SequenceMemoryOptions } from "./SequenceMemory.ts"
import { type StepCosts, StepPlan, type Work } from "./StepPlan.ts"

export interface StepLoopOptions extends SequenceMemoryOptions {
  readonly vocabulary: Vocabulary
  readonly costs: StepCosts
  /** Of the time, for prompts beside running replies: see PromptPace. */
  readonly promptShare: number
}

const failed = (cause: unknown): EngineError =>
  new EngineError({
    reason: "Failed",
    field: "",
    detail: cause instanceof Error ? cause.message : String(cause),
  })

const itemOf = ({ pending, slot }: Job, take: number): BatchItem => {
  const whole = take === pending.length
  const tokens = whole ? pending : pending.slice(0, take)
  return { sequenceId: slot!.id, position: slot!.tokens.length, tokens, logits: whole }
}

export class StepLoop {
  readonly #native: NativeContext
  readonly #vocabulary: Vocabulary
  readonly #memory: SequenceMemory
  readonly #plan: StepPlan
  /** Jobs that take part in the steps. Bounded by the slots. */
  readonly #running = new Set<Job>()
  #driver: Promise<void> | undefined
  /** Jobs of the native call under way. */
  #evaluating: ReadonlyArray<Job> = []
  #stepEnded: PromiseWithResolvers<void> | undefined
  #order = 0
  #closed = false

  constructor(options: StepLoopOptions) {
    this.#native = options.native
    this.#vocabulary = options.vocabulary
    this.#memory = new SequenceMemory(options)
    this.#plan = new StepPlan({ share: options.promptShare, costs: options.costs })
  }

  /** While on, no checkpoints are kept. */
  lean(on: boolean): void {
    this.#memory.lean(on)
  }

  /** Empties all sequences; no job may be open. Later prompts find nothing of earlier ones. */
  empty(): void {
    this.#memory.empty()
  }

  /** Not more jobs at a time than slots: the caller's semaphore. */
  open(terms: JobTerms): Job {
    return new Job(this.#order++, terms)
  }

  /** Takes the job along until it ends or its reader falls behind; `report` hears of it once. */
  run(job: Job, report: (exit: Exit.Exit<Outcome, EngineError>) => void): void {
    if (this.#closed) {
      report(Exit.interrupt())
      return
    }
    job.listen(report)
    this.#running.add(job)
    this.#driver ??= this.#drive()
  }

  /** Resolves when the job's sequence is free again: at once, or at the end of the step under way. */
  async release(job: Job): Promise<void> {
    job.abandon()
    this.#running.delete(job)
    if (this.#evaluating.length === 1 && this.#evaluating[0] === job) this.#native.interrupt()
    if (this.#stepEnded !== undefined) await this.#stepEnded.promise
    job.sampler?.dispose()
    job.sampler = undefined
    if (job.slot === undefined) return
    job.slot.busy = false
    job.slot = undefined
  }

  /** Ends every job as interrupted and resolves when the native context is no longer in use. */
  async close(): Promise<void> {
    this.#closed = true
    for (const job of this.#running) job.report(Exit.interrupt())
    this.#running.clear()
    this.#native.interrupt()
    await this.#driver
    this.#memory.close()
  }

  async #drive(): Promise<void> {
    while (this.#running.size > 0) {
      this.#stepEnded = Promise.withResolvers()
      try {
        await this.#step()
      } catch (defect) {
        // An outlet that throws, or a sequence that cannot be cleared: every job has to end.
        for (const job of this.#running) this.#leave(job, Exit.die(defect))
      }
      this.#stepEnded.resolve()
      this.#stepEnded = undefined
      // What waited for the end of the step goes first: a released job must not be in the next one.
      await Promise.resolve()
    }
    this.#driver = undefined
  }

  /** One native call and what follows from it. */
  async #step(): Promise<void> {
    for (const job of this.#running) if (job.slot === undefined) await this.#admit(job)
    const step = this.#plan.next(this.#works())
    if (step === undefined) return
    const jobs = (step.kind === "prompt" ? [step.id] : step.ids).map((id) => this.#jobOf(id))
    const items = jobs.map((job) => itemOf(job, step.kind === "prompt" ? step.take : 1))
    const started = performance.now()
    let rows: ReadonlyArray<number>
    try {
      this.#evaluating = jobs
      rows = await this.#native.decode(items)
    } catch (cause) {
      for (const [at, job] of jobs.entries()) {
        if (cause instanceof Interrupted) this.#memory.takeBack(job.slot!, items[at]!.tokens.length)
        else this.#fail(job, cause)
      }
      return
    } finally {
      this.#evaluating = []
    }
    if (step.kind === "prompt") this.#plan.observe(step, performance.now() - started)
    for (const [at, job] of jobs.entries()) await this.#evaluated(job, items[at]!)
    await this.#draw(jobs, rows)
    if (step.kind === "replies") this.#plan.observe(step, performance.now() - started)
  }

  /** Finds the job's sequence, brings it to the part it shares with the prompt, and announces the start. */
  async #admit(job: Job): Promise<void> {
    const { prompt, out } = job.terms
    const chosen = this.#memory.take(prompt)
    if (chosen === undefined) return this.#fail(job, new Error("more requests than sequences"))
    job.slot = chosen.slot
    try {
      const kept = await this.#memory.keep(chosen.slot, chosen.keep)
      job.pending = prompt.slice(kept)
      job.sampler = this.#native.sampler(job.terms.sampling)
      if (job.wanted) out.started({ promptTokens: prompt.length, cachedTokens: kept })
    } catch (cause) {
      this.#fail(job, cause)
    }
  }

  #works(): ReadonlyArray<Work> {
    const works: Array<Work> = []
    for (const { slot, order, pending, replying, beganBefore, pauseAfter } of this.#running)
      if (slot !== undefined)
        works.push({ id: slot.id, order, pending: pending.length, replying, beganBefore, pauseAfter })
    return works
  }

  #jobOf(id: number): Job {
    for (const job of this.#running) if (job.slot?.id === id) return job
    throw new Error(`no job on sequence ${id}`)
  }

  async #evaluated(job: Job, { tokens }: BatchItem): Promise<void> {
    const slot = job.slot!
    for (const token of tokens) slot.tokens.push(token)
    job.pending = tokens === job.pending ? [] : job.pending.slice(tokens.length)
    if (!job.replying && job.terms.marks.includes(slot.tokens.length)) {
      try {
        await this.#memory.save(slot)
      } catch (cause) {
        this.#fail(job, cause)
      }
    }
  }

  /**
   * One draw for each job whose pending tokens are all evaluated, then all of them delivered together, so that one
   * message carries all tokens of the call. Draws may overlap because the rows of a call of replies, and the only row of a
   * prompt, lie in the order of the batch: otherwise the first draw would sort them, without a lock.
   */
  async #draw(jobs: ReadonlyArray<Job>, rows: ReadonlyArray<number>): Promise<void> {
    const drawn = await Promise.all(
      jobs.map((job, at) => (rows[at]! >= 0 && job.wanted ? this.#drawOne(job, rows[at]!) : undefined)),
    )
    for (const [at, job] of jobs.entries()) {
      const token = drawn[at]
      if (token !== undefined && job.wanted) this.#deliver(job, token)
    }
  }

  /** A token, or none where drawing failed and the job with it. */
  async #drawOne(job: Job, row: number): Promise<number | undefined> {
    try {
      const token = await job.sampler!.sample(row)
      if (token >= 0) return token
      this.#fail(job, new Error("the sampler drew no token"))
    } catch (cause) {
      this.#fail(job, cause)
    }
    return undefined
  }

  #deliver(job: Job, token: number): void {
    const { out, prompt } = job.terms
    if (!job.replying) job.beganBefore = this.#order
    job.replying = true
    job.pending = [token]
    const { text, finish } = job.completion.accept(this.#vocabulary.piece(token))
    const completionTokens = job.completion.tokens
    if (text !== "") out.push({ text, completionTokens })
    if (finish !== undefined) {
      const end: GenerateEnd = { finishReason: finish, promptTokens: prompt.length, completionTokens }
      this.#leave(job, Exit.succeed(end))
    } else if (out.paused()) {
      this.#leave(job, Exit.succeed("paused"))
    }
  }

  #leave(job: Job, exit: Exit.Exit<Outcome, EngineError>): void {
    this.#running.delete(job)
    job.report(exit)
  }

  /** What the sequence holds is no longer certain, so nothing of it may be used again. */
  #fail(job: Job, cause: unknown): void {
    if (job.slot !== undefined) this.#memory.forget(job.slot)
    this.#leave(job, Exit.fail(failed(cause)))
  }
}
