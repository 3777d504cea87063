// The state of one admitted reply, from its sequence to its last token. LlamaGguf makes it, StepLoop advances it.
import type * as Exit from "effect/Exit"
import { callFailed, EngineError, type Outlet, type Sampling } from "../../protocol/Engine.ts"
import type { BatchItem, Sampler, SavedState } from "../native/Native.ts"
import type { Reply, ReplyEnd } from "../replies/Reply.ts"
import type { Biases } from "../sampling/LogitSampler.ts"
import type { Score } from "../sampling/Scores.ts"
import type { PictureSpan } from "../vision/Spans.ts"
import { JobPictures } from "./JobPictures.ts"
import { mostTaken, type RowReading, rowsOf } from "./Reading.ts"
import { type Owner, positionAt, type Slot } from "./Slots.ts"

/** How a run of the loop ended for a job. `paused`: the reader is behind; the job is run again once it has caught up. */
export type Outcome = ReplyEnd | "paused"

export interface JobTerms {
  /** Tokens, and rows of pictures as negative numbers. */
  readonly prompt: ReadonlyArray<number>
  /** The rows of pictures in the prompt, in order. */
  readonly spans: ReadonlyArray<PictureSpan>
  readonly marks: ReadonlyArray<number>
  readonly owner: Owner
  /** Tokens of the prompt's beginning that are a prompt which all owners share; 0 if there are none. */
  readonly shared: number
  readonly sampling: Sampling
  readonly biases?: Biases
  readonly reply: Reply
  readonly out: Outlet<"text">
  /** Present: logits are read after tokens of the prompt. */
  readonly reading?: RowReading
}

export class Job {
  readonly terms: JobTerms
  readonly pictures: JobPictures
  /** Admission order. */
  readonly order: number
  slot: Slot<SavedState> | undefined
  sampler: Sampler | undefined
  /** Jobs with the same prompt that wait until this one's prompt is evaluated: their sequences are copies of its sequence. */
  followers: Array<Job> = []
  /** True for a follower until then. */
  waits = false
  /** True while its next token is drawn, see LaterDraws. */
  drawing = false
  /** Of the token that was sampled last, if the reply needs it. */
  score: Score | undefined
  /** Tokens not evaluated yet: the rest of the prompt, later the newest token and those that follow it for certain. */
  pending: ReadonlyArray<number>
  /** True once the first token was sampled. */
  replying = false
  /** Admission order of the first job that was admitted after this one's first token. */
  beganBefore = 0
  #report: ((exit: Exit.Exit<Outcome, EngineError>) => void) | undefined

  constructor(order: number, terms: JobTerms) {
    this.order = order
    this.terms = terms
    this.pictures = new JobPictures(terms.spans)
    this.pending = terms.prompt
  }

  /** True while the request waits for this job's next outcome. */
  get wanted(): boolean {
    return this.#report !== undefined
  }

  listen(report: (exit: Exit.Exit<Outcome, EngineError>) => void): void {
    this.#report = report
  }

  /** The request was interrupted; the next outcome is not reported. */
  abandon(): void {
    this.#report = undefined
  }

  /** Reports the outcome, at most once for each `listen`. */
  report(exit: Exit.Exit<Outcome, EngineError>): void {
    const report = this.#report
    this.#report = undefined
    report?.(exit)
  }

  /** Tokens of the prompt until a state is to be saved, a picture begins or ends, or a call would have too many rows. */
  get pauseAfter(): number | undefined {
    if (this.replying) return undefined
    const { marks, reading, shared } = this.terms
    const at = this.slot?.tokens.length ?? 0
    const mark = marks.find((length) => length > at) ?? Infinity
    const span = this.pictures.nextSpan(at)
    const edge = span === undefined ? Infinity : span.at > at ? span.at : span.at + span.count
    const next = Math.min(mark, edge, shared > at ? shared : Infinity) - at
    const most = Math.min(next, reading === undefined ? Infinity : mostTaken(reading))
    return most === Infinity ? undefined : most
  }

  /** True if the next rows are not computed yet. */
  get waitsForRows(): boolean {
    return !this.replying && this.slot !== undefined && this.pictures.isMissing(this.slot.tokens.length)
  }
}

/** The job's next `take` tokens as a part of a native call. Not rows of a picture. */
export const itemOf = ({ pending, replying, slot, terms }: Job, take: number): BatchItem => {
  const whole = take === pending.length
  const tokens = whole ? pending : pending.slice(0, take)
  const from = slot!.tokens.length
  const item = { sequenceId: slot!.id, position: positionAt(slot!, from), tokens }
  const { prompt, reading } = terms
  if (reading === undefined || replying) return { ...item, logits: whole }
  const rowsAt = rowsOf(reading, prompt.length, from, take)
  return { ...item, logits: whole && reading.end === undefined, rowsAt }
}

export const failed = (cause: unknown): EngineError =>
  cause instanceof EngineError ? cause : callFailed(cause instanceof Error ? cause.message : String(cause))
