// How long the store keeps what it only keeps for a time. Set from the node's settings; commands use the defaults and remove nothing.
import { Context } from "effect"

const hourMs = 3_600_000

export interface Retention {
  /** Ended transcription jobs with their transcripts, milliseconds after their end (protocol 9.6). */
  readonly jobMs: number
  /** Answers to requests with an `Idempotency-Key`, milliseconds (protocol 5.5). */
  readonly answerMs: number
  /** Single receipts, milliseconds. Older ones that were exported are added to the sums of their day. Undefined: for ever. */
  readonly receiptMs: number | undefined
}

export const defaultRetention: Retention = {
  jobMs: 24 * hourMs,
  answerMs: 24 * hourMs,
  receiptMs: undefined,
}

export const Retention = Context.Reference<Retention>("edgewise/store/Retention", {
  defaultValue: () => defaultRetention,
})
