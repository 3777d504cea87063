// What becomes known of one request on its way and is told in the head of its answer: its id, how long each step took,
// what is left of the caller's rate, the receipt of what it costs. Transport makes one for every request and writes it
// out (see ReplyHead); whoever learns one of these facts notes it here. Knows no header's name.
import { Context } from "effect"
import type { Admission } from "#domain/access/SlidingWindowLimiter.ts"
import { isRequestId } from "#domain/wire/RequestId.ts"
import type { Reservation } from "#store/ledger/UsageLedger.ts"

/** Milliseconds since the program began; a clock of the machine, because it measures the machine. */
export const nowMs = (): number => performance.now()

/** Two decimals: what such a clock is worth. */
const rounded = (ms: number): number => Math.round(ms * 100) / 100

/** A job's receipt is known by the job's id, long before it is written. */
export type Receipt = Pick<Reservation, "receiptId" | "state">

export class RequestContext {
  /** The client's own, where it is one; else made here. */
  readonly requestId: string
  readonly startedMs: number = nowMs()
  /** From the request's head to its caller's name, or to the refusal of its credential. */
  authMs: number | undefined
  /** From asking a model for its work to the work's begin: waiting line, loading, reading the prompt. */
  queueMs: number | undefined
  /** From the request's head to the first token, sound or segment. */
  firstUnitMs: number | undefined
  /** Where the caller's own trace stands, as it says. */
  traceparent: string | undefined
  /** When a model was asked for its work, and which one. */
  askedMs: number | undefined
  model: string | undefined
  rate: (Admission & { readonly limit: number }) | undefined
  receipt: Receipt | undefined
  /** The reply ended in a way that is not an answer, though its last byte was written: an event that tells of a failure. */
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

  /** `askedMs` is when the model was asked. The first of several counts, as with the other steps. */
  accepted(askedMs: number, model?: string): void {
    if (this.queueMs !== undefined) return
    this.queueMs = nowMs() - askedMs
    this.askedMs = askedMs
    this.model = model
  }

  firstUnit(): void {
    this.firstUnitMs ??= nowMs() - this.startedMs
  }

  /** The answer fails after its head was sent, through this side's fault. */
  breaksOff(failure: unknown): void {
    this.brokeOff = true
    this.failure = failure
  }

  /** The first one: a transcription sets money aside as it goes, and charges it as one. */
  reserved(receipt: Receipt): void {
    this.receipt ??= receipt
  }

  /** What an answer that says so with this status will have cost; undefined where it costs nothing. */
  receiptIdFor(status: number): string | undefined {
    const { receipt } = this
    if (receipt === undefined || receipt.state === "cancelled") return undefined
    return status < 400 || receipt.state === "settled" ? receipt.receiptId : undefined
  }

  /** As `Server-Timing` has it; steps that have not come, or not yet, are left out. */
  serverTiming(): string {
    const total = `total;dur=${rounded(nowMs() - this.startedMs)}`
    const first = this.firstUnitMs === undefined ? total : `first;dur=${rounded(this.firstUnitMs)}, ${total}`
    const queue = this.queueMs === undefined ? first : `queue;dur=${rounded(this.queueMs)}, ${first}`
    return this.authMs === undefined ? queue : `auth;dur=${rounded(this.authMs)}, ${queue}`
  }

  /** The same for the last event of a stream, in JSON's way. */
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

/** Of work that no request waits for: of all of it together, so they say nothing. */
export const noRequest = new RequestContext("none", () => "")

/** Of the request that is being answered. */
export const CurrentRequest = Context.Reference<RequestContext>("edgewise/api/CurrentRequest", {
  defaultValue: () => noRequest,
})
