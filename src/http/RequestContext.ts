// The facts about one request that stand in the head of its answer: its id, how long each step took, what is left of
// the caller's rate, the receipt of what it costs. Transport makes one for every request and writes it out (see
// ReplyHead); the code that learns a fact records it here. Knows no header's name.
import { Context } from "effect"
import type { Admission } from "#domain/access/SlidingWindowLimiter.ts"
import { isRequestId } from "#domain/wire/RequestId.ts"
import type { Reservation } from "#store/ledger/UsageLedger.ts"

/** Milliseconds since the program began, from the monotonic clock: wall time may be set. */
export const nowMs = (): number => performance.now()

/** Whether the sender is a client of OpenAI's, whose exceptions read an `error` object (protocol 3.1). */
export const wantsErrorObject = (headers: Readonly<Record<string, string | undefined>>): boolean =>
  headers["x-stainless-lang"] !== undefined

/** Two decimals: the clock's resolution. */
const rounded = (ms: number): number => Math.round(ms * 100) / 100

/** A job's receipt has the job's id, long before it is written. */
export type Receipt = Pick<Reservation, "receiptId" | "state">

export class RequestContext {
  /** The client's own if it is valid; otherwise made here. */
  readonly requestId: string
  readonly startedMs: number = nowMs()
  /** From the request's head to its caller being known, or to the refusal of its credential. */
  authMs: number | undefined
  /** From the request to a model until its work begins: queue, loading, reading the prompt. */
  queueMs: number | undefined
  /** From the request's head to the first token, audio or segment. */
  firstUnitMs: number | undefined
  /** The trace context that the caller sent. */
  traceparent: string | undefined
  wantsErrorObject = false
  /** When a model's work was requested, and which model. */
  askedMs: number | undefined
  model: string | undefined
  rate: (Admission & { readonly limit: number }) | undefined
  receipt: Receipt | undefined
  /** The reply ended with an event that reports a failure, though its last byte was written. */
  failed = false
  /**
   * Why the answer is an error or broke off, for the operator's log and never for the caller: an error of domain/Errors,
   * a cause, or a sentence. Read where the answer ends (AnswerFailures).
   */
  failure: unknown
  /** The answer failed on this side after its head was sent. */
  brokeOff = false

  /** The caller's credential is valid. */
  identified = false

  constructor(given: string | undefined, newId: () => string) {
    this.requestId = given !== undefined && isRequestId(given) ? given : `req-${newId()}`
  }

  authenticated(): void {
    this.authMs ??= nowMs() - this.startedMs
  }

  /** `askedMs` is when the model's work was requested. Only the first of several calls counts, as with the other steps. */
  accepted(askedMs: number, model?: string): void {
    if (this.queueMs !== undefined) return
    this.queueMs = nowMs() - askedMs
    this.askedMs = askedMs
    this.model = model
  }

  firstUnit(): void {
    this.firstUnitMs ??= nowMs() - this.startedMs
  }

  /** Records that the answer failed after its head was sent, through this side's fault. */
  breaksOff(failure: unknown): void {
    this.brokeOff = true
    this.failure = failure
  }

  /** Only the first receipt counts: a transcription reserves money repeatedly, and charges it once. */
  reserved(receipt: Receipt): void {
    this.receipt ??= receipt
  }

  /** The receipt of an answer with this status; undefined if it costs nothing. */
  receiptIdFor(status: number): string | undefined {
    const { receipt } = this
    if (receipt === undefined || receipt.state === "cancelled") return undefined
    return status < 400 || receipt.state === "settled" ? receipt.receiptId : undefined
  }

  /** The value of `Server-Timing`; steps that have not happened are left out. */
  serverTiming(): string {
    const total = `total;dur=${rounded(nowMs() - this.startedMs)}`
    const first = this.firstUnitMs === undefined ? total : `first;dur=${rounded(this.firstUnitMs)}, ${total}`
    const queue = this.queueMs === undefined ? first : `queue;dur=${rounded(this.queueMs)}, ${first}`
    return this.authMs === undefined ? queue : `auth;dur=${rounded(this.authMs)}, ${queue}`
  }

  /** The same for the last event of a stream, as JSON. */
  timing() {
    const step = (ms: number | undefined) => (ms === undefined ? null : rounded(ms))
    return {
      auth_ms: step(this.authMs),
      queue_ms: step(this.queueMs),
      first_unit_ms: step(this.firstUnitMs),
      total_ms: step(nowMs() - this.startedMs),
    }
  }
}

/** Shared sink for background work, which belongs to no request. Its timings are never reported. */
export const noRequest = new RequestContext("none", () => "")

/** The context of the current request. */
export const CurrentRequest = Context.Reference<RequestContext>("edgewise/api/CurrentRequest", {
  defaultValue: () => noRequest,
})
