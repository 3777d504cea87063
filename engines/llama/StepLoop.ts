// Continuous batching: every job's next tokens in one native evaluation, step after step, until no job is left.
// Called by LlamaGguf, which owns the fibers; here is the one place where the native context is touched, so that
// its calls never overlap. Knows no request, no template and no HTTP.
//
// A step ends with one draw a sequence and one `push` a token; cancels, pauses and newcomers take effect between
// steps, and a step is at most one prompt slice long.
import * as Exit from "effect/Exit"
import { EngineError, type GenerateEnd } from "../Engine.ts"
import { Checkpoints } from "./Checkpoints.ts"
import { Job, type JobTerms, type Outcome } from "./Job.ts"
import type { BatchItem, NativeContext, SavedState } from "./native/Native.ts"
import { PromptPace } from "./PromptPace.ts"
import { chooseSlot, makeSlots, type Slot } from "./Slots.ts"
import { planStep, type Share } from "./StepPlan.ts"
import type { Vocabulary } from "./Vocabulary.ts"

/** Every so many steps the oldest prompt goes first, so that short prompts cannot starve a long one. A guess. */
const oldestFirstEvery = 4

export interface StepLoopOptions {
  readonly native: NativeContext
  readonly vocabulary: Vocabulary
  readonly slots: number
  readonly needsCheckpoints: boolean
  readonly checkpointBytes: number
  readonly batchTokens: number
  readonly sliceMs: number
}

const failed = (cause: unknown): EngineError =>
  new EngineError({
    reason: "Failed",
    field: "",
    detail: cause instanceof Error ? cause.message : String(cause),
  })

export class StepLoop {
  readonly #options: StepLoopOptions
  readonly #native: NativeContext
  readonly #slots: ReadonlyArray<Slot<SavedState>>
  readonly #checkpoints: Checkpoints
  readonly #pace: PromptPace
  /** Jobs that take part in the steps. Bounded by the slots. */
  readonly #running = new Set<Job>()
  #driver: Promise<void> | undefined
  #turnEnded: PromiseWithResolvers<void> | undefined
  #steps = 0
  #order = 0
  #closed = false

  constructor(options: StepLoopOptions) {
    this.#options = options
    this.#native = options.native
    this.#slots = makeSlots(options.slots)
    this.#checkpoints = new Checkpoints(options.native, options.checkpointBytes)
    this.#pace = new PromptPace({ sliceMs: options.sliceMs, maxTokens: options.batchTokens })
  }

  /** While on, no checkpoints are kept. */
  lean(on: boolean): void {
    this.#checkpoints.lean = on
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
    if (this.#turnEnded !== undefined) await this.#turnEnded.promise
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
    await this.#driver
    this.#checkpoints.clear(this.#slots)
  }

  async #drive(): Promise<void> {
    while (this.#running.size > 0) {
      this.#turnEnded = Promise.withResolvers()
      try {
        await this.#turn()
      } catch (defect) {
        // An outlet that throws, or a sequence that cannot be cleared: nobody may wait for ever.
        for (const job of this.#running) this.#leave(job, Exit.die(defect))
      }
      this.#turnEnded.resolve()
      this.#turnEnded = undefined
      // Those who waited for the turn's end go first: a released job must not be in the next one.
      await Promise.resolve()
    }
    this.#driver = undefined
  }

  async #turn(): Promise<void> {
    for (const job of this.#running) if (job.slot === undefined) await this.#admit(job)
    const shares = this.#plan()
    const jobs = shares.map(({ id }) => this.#jobOf(id))
    const items = shares.map((share, at) => this.#itemOf(jobs[at]!, share))
    if (items.length === 0) return
    const started = performance.now()
    let rows: ReadonlyArray<number>
    try {
      rows = await this.#native.decode(items)
    } catch (cause) {
      for (const job of jobs) this.#fail(job, cause)
      return
    }
    this.#observe(shares, performance.now() - started)
    for (const [at, job] of jobs.entries()) await this.#evaluated(job, items[at]!)
    await this.#draw(jobs, rows)
  }

  /** Finds the job's sequence, brings it to the part it shares with the prompt, and announces the start. */
  async #admit(job: Job): Promise<void> {
    const { prompt, out } = job.terms
    const chosen = chooseSlot(this.#slots, prompt, this.#options.needsCheckpoints)
    if (chosen === undefined) return this.#fail(job, new Error("more requests than sequences"))
    const { slot } = chosen
    slot.busy = true
    slot.lastUsed = ++this.#order
    job.slot = slot
    try {
      const kept = await this.#keep(slot, chosen.keep)
      job.pending = prompt.slice(kept)
      job.sampler = this.#native.sampler(job.terms.sampling)
      if (job.wanted) out.started({ promptTokens: prompt.length, cachedTokens: kept })
    } catch (cause) {
      this.#fail(job, cause)
    }
  }

  /** Shortens the sequence to `length` tokens, or to none where that cannot be done. */
  async #keep(slot: Slot<SavedState>, length: number): Promise<number> {
    if (length === slot.tokens.length) return length
    const kept = length > 0 && (await this.#shorten(slot, length))
    if (!kept) this.#native.clear(slot.id)
    slot.tokens.length = kept ? length : 0
    this.#checkpoints.dropAfter(slot, slot.tokens.length)
    return slot.tokens.length
  }

  async #shorten(slot: Slot<SavedState>, length: number): Promise<boolean> {
    if (!this.#options.needsCheckpoints) return this.#native.cut(slot.id, length, slot.tokens.length)
    const checkpoint = slot.checkpoints.findLast((candidate) => candidate.length === length)
    return checkpoint !== undefined && this.#native.restore(checkpoint.saved, length)
  }

  #plan(): ReadonlyArray<Share> {
    const works = []
    let prompts = false
    let replies = false
    for (const { slot, order, pending, replying, pauseAfter } of this.#running) {
      if (slot === undefined) continue
      works.push({ id: slot.id, order, pending: pending.length, replying, pauseAfter })
      prompts ||= !replying
      replies ||= replying
    }
    return planStep(works, {
      promptTokens: prompts ? this.#pace.nextSliceTokens(replies) : 0,
      batchTokens: this.#options.batchTokens,
      oldestFirst: this.#steps++ % oldestFirstEvery === 0,
    })
  }

  #jobOf(id: number): Job {
    for (const job of this.#running) if (job.slot?.id === id) return job
    throw new Error(`no job on sequence ${id}`)
  }

  #itemOf(job: Job, { id, take }: Share): BatchItem {
    const whole = take === job.pending.length
    return {
      sequenceId: id,
      position: job.slot!.tokens.length,
      tokens: whole ? job.pending : job.pending.slice(0, take),
      logits: whole,
    }
  }

  #observe(shares: ReadonlyArray<Share>, elapsedMs: number): void {
    let tokens = 0
    for (const { take } of shares) tokens += take
    if (tokens > shares.length) this.#pace.observe(tokens, elapsedMs)
    else this.#pace.observeReplies(elapsedMs)
  }

  async #evaluated(job: Job, { tokens }: BatchItem): Promise<void> {
    const slot = job.slot!
    for (const token of tokens) slot.tokens.push(token)
    job.pending = tokens === job.pending ? [] : job.pending.slice(tokens.length)
    if (!job.replying && job.terms.marks.includes(slot.tokens.length)) {
      try {
        await this.#checkpoints.take(slot, this.#slots)
      } catch (cause) {
        this.#fail(job, cause)
      }
    }
  }

  /**
   * One draw for each job whose pending tokens are all evaluated, then all of them delivered in one go, so that one
   * message carries the whole step. After a step with prompts the rows may lie in another order than the batch, and
   * the native side sorts them at the first draw, without a lock: so that one goes alone.
   */
  async #draw(jobs: ReadonlyArray<Job>, rows: ReadonlyArray<number>): Promise<void> {
    const drawing = jobs.filter((job, at) => rows[at]! >= 0 && job.wanted)
    const rowOf = (job: Job) => rows[jobs.indexOf(job)]!
    const alone = drawing.length === 1 || jobs.some(({ replying }) => !replying) ? 1 : 0
    const tokens: Array<number | undefined> = []
    for (const job of drawing.slice(0, alone)) tokens.push(await this.#drawOne(job, rowOf(job)))
    if (drawing.length > alone)
      tokens.push(...(await Promise.all(drawing.slice(alone).map((job) => this.#drawOne(job, rowOf(job))))))
    for (const [at, job] of drawing.entries()) {
      const token = tokens[at]
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
    job.replying = true
    job.pending = [token]
    const { text, finish } = job.completion.accept(this.#options.vocabulary.piece(token))
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
    if (job.slot !== undefined) {
      this.#native.clear(job.slot.id)
      job.slot.tokens.length = 0
      this.#checkpoints.dropAfter(job.slot, 0)
    }
    this.#leave(job, Exit.fail(failed(cause)))
  }
}
