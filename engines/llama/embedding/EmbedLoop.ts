// Evaluates the inputs of all open requests, one native call after the other. The texts of the vectors are written while the next
// call computes.
import * as Effect from "effect/Effect"
import { callFailed, type EmbedRequest, type EngineError, type Outlet } from "../../protocol/Engine.ts"
import { vectorText } from "../../shared/text/VectorText.ts"
import { Interrupted } from "../native/Native.ts"
import type { EmbeddingContext } from "./EmbeddingContext.ts"
import { type Bounds, planEvaluation, type Share, type Waiting } from "./EmbedPlan.ts"

/** `paused`: its reader is too slow. It goes on when `run` is called again. */
type Outcome = "done" | "paused"

interface Job {
  readonly progress: Waiting
  readonly request: EmbedRequest
  readonly out: Outlet<"embedding">
  readonly resume: (result: Effect.Effect<Outcome, EngineError>) => void
  /** It has ended, or was interrupted or put aside. */
  left: boolean
}

export class EmbedLoop {
  readonly #native: EmbeddingContext
  readonly #bounds: Bounds
  /** Of the open requests, in the order in which they are served. */
  #jobs: ReadonlyArray<Job> = []
  /** Those that the running call computes for. */
  #computing: ReadonlyArray<Job> = []
  #running: Promise<void> | undefined

  constructor(native: EmbeddingContext, bounds: Bounds) {
    this.#native = native
    this.#bounds = bounds
  }

  /** Pushes the vectors of all inputs. Interruption removes the request; a call that computes only for it is ended. */
  run(
    inputs: ReadonlyArray<ReadonlyArray<number>>,
    request: EmbedRequest,
    out: Outlet<"embedding">,
  ): Effect.Effect<void, EngineError> {
    const progress: Waiting = { inputs, next: 0 }
    const fromHere: Effect.Effect<void, EngineError> = Effect.flatMap(
      this.#runOn(progress, request, out),
      (outcome) => (outcome === "done" ? Effect.void : Effect.andThen(out.resumed, fromHere)),
    )
    return Effect.suspend(() => fromHere)
  }

  #runOn(progress: Waiting, request: EmbedRequest, out: Outlet<"embedding">) {
    return Effect.callback<Outcome, EngineError>((resume) => {
      const job: Job = { progress, request, out, resume, left: false }
      this.#jobs = [...this.#jobs, job]
      this.#start()
      return Effect.sync(() => {
        this.#leave(job)
        if (this.#computing.length > 0 && this.#computing.every(({ left }) => left)) this.#native.interrupt()
      })
    })
  }

  /** Completes when no native call runs. No request may be open. */
  async close(): Promise<void> {
    await this.#running
  }

  #leave(job: Job): void {
    job.left = true
    this.#jobs = this.#jobs.filter((one) => one !== job)
  }

  #end(job: Job, result: Effect.Effect<Outcome, EngineError>): void {
    if (job.left) return
    this.#leave(job)
    job.resume(result)
  }

  #start(): void {
    this.#running ??= this.#serve().finally(() => {
      this.#running = undefined
      // A request may have come after the last look at the list.
      if (this.#jobs.some((job) => !job.out.paused())) this.#start()
    })
  }

  async #serve(): Promise<void> {
    /** Writes the texts of the last call's vectors. */
    let write = (): void => {}
    for (;;) {
      const ready = this.#jobs.filter((job) => !job.out.paused())
      const shares = planEvaluation(ready, this.#bounds)
      const evaluated = shares.length === 0 ? undefined : this.#evaluate(shares)
      write()
      write = (await evaluated) ?? (() => {})
      if (evaluated === undefined) {
        for (const job of this.#jobs) if (job.out.paused()) this.#end(job, Effect.succeed("paused"))
        return
      }
      // Lets messages in, e.g. new requests and cancellations.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** One native call. The result writes the texts of its vectors. */
  async #evaluate(shares: ReadonlyArray<Share<Job>>): Promise<() => void> {
    this.#computing = shares.map(({ of }) => of)
    const parts = shares.map(({ count, of }) => {
      const { inputs, next } = of.progress
      of.progress.next += count
      return { of, tokens: inputs.slice(next, next + count) }
    })
    const items = parts
      .flatMap(({ tokens }) => tokens)
      .map((tokens, sequenceId) => ({ sequenceId, position: 0, tokens, logits: true }))
    // The request that was first is last in the next call.
    const [first] = shares
    this.#jobs = [
      ...this.#jobs.filter((job) => job !== first?.of),
      ...this.#jobs.filter((job) => job === first?.of),
    ]
    try {
      await this.#native.decode(items)
      let sequenceId = 0
      const done = parts.map(({ of, tokens }) => ({
        of,
        isLast: of.progress.next === of.progress.inputs.length,
        promptTokens: tokens.reduce((sum, { length }) => sum + length, 0),
        vectors: tokens.map(() => this.#native.vector(sequenceId++)),
      }))
      return () => {
        for (const { isLast, of, promptTokens, vectors } of done) {
          if (of.left) continue
          of.out.push({ texts: vectors.map((vector) => vectorText(vector, of.request)), promptTokens })
          if (isLast) this.#end(of, Effect.succeed("done"))
        }
      }
    } catch (cause) {
      if (!(cause instanceof Interrupted)) {
        const detail = cause instanceof Error ? cause.message : String(cause)
        const failure = Effect.fail(callFailed(detail))
        for (const { of } of shares) this.#end(of, failure)
      }
      return () => {}
    } finally {
      this.#computing = []
    }
  }
}
