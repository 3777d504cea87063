// One admitted request, from its sequence to its last token. Made by LlamaGguf, moved forward by StepLoop; the two
// meet only here. Holds no timer and no fiber.
import type * as Exit from "effect/Exit"
import type { EngineError, GenerateEnd, Outlet, Sampling } from "../../protocol/Engine.ts"
import type { Sampler, SavedState } from "../native/Native.ts"
import { Completion } from "../output/Completion.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import type { Slot } from "./Slots.ts"

/** How a run of the loop ended for a job: `paused` comes back after its reader caught up. */
export type Outcome = GenerateEnd | "paused"

export interface JobTerms {
  readonly prompt: ReadonlyArray<number>
  readonly marks: ReadonlyArray<number>
  readonly sampling: Sampling
  readonly stop: ReadonlyArray<string>
  readonly maxTokens: number
  readonly thought: ThoughtMarkers | undefined
  readonly out: Outlet<"text">
}

export class Job {
  readonly terms: JobTerms
  /** Admission order. */
  readonly order: number
  readonly completion: Completion
  slot: Slot<SavedState> | undefined
  sampler: Sampler | undefined
  /** Tokens not evaluated yet: what is left of the prompt, later the newest token. */
  pending: ReadonlyArray<number>
  /** False until the first token was drawn. */
  replying = false
  /** Admission order of the first job that came after this one's first token. */
  beganBefore = 0
  #report: ((exit: Exit.Exit<Outcome, EngineError>) => void) | undefined

  constructor(order: number, terms: JobTerms) {
    this.order = order
    this.terms = terms
    this.completion = new Completion(terms)
    this.pending = terms.prompt
  }

  /** Whether somebody waits for this job's next outcome. */
  get wanted(): boolean {
    return this.#report !== undefined
  }

  listen(report: (exit: Exit.Exit<Outcome, EngineError>) => void): void {
    this.#report = report
  }

  /** Nobody waits any more: the request was interrupted. */
  abandon(): void {
    this.#report = undefined
  }

  /** At most once a `listen`. */
  report(exit: Exit.Exit<Outcome, EngineError>): void {
    const report = this.#report
    this.#report = undefined
    report?.(exit)
  }

  /** How far the prompt may run before the next checkpoint is due. */
  get pauseAfter(): number | undefined {
    const at = this.slot?.tokens.length ?? 0
    const mark = this.replying ? undefined : this.terms.marks.find((length) => length > at)
    return mark === undefined ? undefined : mark - at
  }
}
