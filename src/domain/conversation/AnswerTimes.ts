// Where the time of one answer went, from the end of the user's speech to its last event. Pure; the caller passes the time.
// Times are milliseconds of a monotonic clock, durations milliseconds.

/** The steps of which the first time counts. */
type AnswerStep =
  /** The language model was asked. */
  | "asked"
  | "firstToken"
  /** The first clause was given to the voice. */
  | "firstClause"
  /** The voice's first samples arrived. */
  | "firstSamples"
  /** The first audio was sent, or the first text of an answer that is written. */
  | "firstSent"

/** What an answer follows: the end of a turn of the user, or `response.create`. */
export interface AnswerCause {
  readonly atMs: number
  /** The silence that ended the turn; undefined where the client ended it. */
  readonly silenceMs: number | undefined
}

/** Undefined: the step has not happened. */
export interface AnswerLatency {
  /** From the last speech to the end of the turn. */
  readonly silenceMs: number | undefined
  /** From the end of the turn to its transcript. */
  readonly transcriptMs: number | undefined
  /** From the request to the language model to its first token. */
  readonly firstTokenMs: number | undefined
  /** From the first token to the first clause. */
  readonly firstClauseMs: number | undefined
  /** From the first clause to the first samples of its speech. */
  readonly firstSamplesMs: number | undefined
  /** From the end of the turn to the first audio or text that was sent. */
  readonly firstSentMs: number | undefined
  /** From the end of the turn until now. */
  readonly totalMs: number
  /** Whether the answer was made before the turn ended: its steps then lie within the silence. */
  readonly isPrepared: boolean
}

const between = (from: number | undefined, to: number | undefined): number | undefined =>
  from === undefined || to === undefined ? undefined : to - from

export class AnswerTimes {
  readonly #times = new Map<AnswerStep, number>()
  #cause: AnswerCause
  #transcriptAtMs: number | undefined
  #isPrepared = false

  constructor(cause: AnswerCause) {
    this.#cause = cause
  }

  reached(step: AnswerStep, nowMs: number): void {
    if (!this.#times.has(step)) this.#times.set(step, nowMs)
  }

  /** The turn has been understood. */
  understood(nowMs: number): void {
    this.#transcriptAtMs = nowMs
  }

  /** The answer was prepared, and this is the turn that it follows. */
  confirmed(cause: AnswerCause): void {
    this.#cause = cause
    this.#isPrepared = true
  }

  /** From the request to the language model to the first samples of the voice. */
  get makingMs(): number | undefined {
    return between(this.#times.get("asked"), this.#times.get("firstSamples"))
  }

  latency(nowMs: number): AnswerLatency {
    const [asked, token, clause, samples, sent] = [
      this.#times.get("asked"),
      this.#times.get("firstToken"),
      this.#times.get("firstClause"),
      this.#times.get("firstSamples"),
      this.#times.get("firstSent"),
    ]
    return {
      silenceMs: this.#cause.silenceMs,
      transcriptMs: between(this.#cause.atMs, this.#transcriptAtMs),
      firstTokenMs: between(asked, token),
      firstClauseMs: between(token, clause),
      firstSamplesMs: between(clause, samples),
      firstSentMs: between(this.#cause.atMs, sent),
      totalMs: nowMs - this.#cause.atMs,
      isPrepared: this.#isPrepared,
    }
  }
}

/** Two decimals; what has not happened is null. */
const told = (ms: number | undefined): number | null => (ms === undefined ? null : Math.round(ms * 100) / 100)

/** The fields of `response.latency`. */
export const latencyObject = (latency: AnswerLatency) => ({
  silence_ms: told(latency.silenceMs),
  transcript_ms: told(latency.transcriptMs),
  first_token_ms: told(latency.firstTokenMs),
  first_clause_ms: told(latency.firstClauseMs),
  first_samples_ms: told(latency.firstSamplesMs),
  first_sent_ms: told(latency.firstSentMs),
  total_ms: told(latency.totalMs),
  prepared: latency.isPrepared,
})
