// What a node counts of its conversations. Lives as long as the node.
import { Histogram } from "../queues/Histogram.ts"
import type { AnswerLatency } from "./AnswerTimes.ts"

/** The steps of an answer whose times are counted; labels of the metric. */
const countedSteps = {
  silence: "silenceMs",
  transcript: "transcriptMs",
  first_token: "firstTokenMs",
  first_clause: "firstClauseMs",
  first_samples: "firstSamplesMs",
  first_sent: "firstSentMs",
  total: "totalMs",
} as const satisfies Record<string, keyof AnswerLatency>
type CountedStep = keyof typeof countedSteps

/**
 * What became of a question to the language model whether the user's message has ended: it was `judged` by the answer, which came
 * too `late`, or there was none: see NoMessageEnd in engines/protocol/Text.ts; `failed`: any other reason.
 */
const messageEndOutcomes = ["judged", "late", "slow", "occupied", "template", "failed"] as const
type MessageEndOutcome = (typeof messageEndOutcomes)[number]

/** Answers whose making is remembered. */
const remembered = 8

export class ConversationMeters {
  readonly stepMs = new Map(
    Object.keys(countedSteps).map((step) => [step as CountedStep, new Histogram()] as const),
  )
  /** Answers that were made before the turn had ended, and those of them that were sent. */
  prepared = 0
  released = 0

  readonly messageEnds = new Map<MessageEndOutcome, number>(messageEndOutcomes.map((outcome) => [outcome, 0]))
  /** Of the answers that were judged by: from the question to the answer. */
  readonly messageEndMs = new Histogram()

  /** What the newest answers took to their first sound. */
  readonly #making: Array<number> = []
  #previewMs: number | undefined

  /**
   * What the newest transcript made ahead took, and the longest that one of the newest spoken answers took from the request to its
   * first samples.
   */
  get lately(): { readonly previewMs: number | undefined; readonly answerMs: number | undefined } {
    const answerMs = this.#making.length === 0 ? undefined : Math.max(...this.#making)
    return { previewMs: this.#previewMs, answerMs }
  }

  /** A transcript was made ahead of the end of a turn, or given up after so long. */
  readonly previewed = (tookMs: number): void => {
    this.#previewMs = tookMs
  }

  /** A question to the language model was answered after so long, or not. */
  messageEnd(outcome: MessageEndOutcome, tookMs: number): void {
    this.messageEnds.set(outcome, (this.messageEnds.get(outcome) ?? 0) + 1)
    if (outcome === "judged") this.messageEndMs.record(tookMs)
  }

  /** An answer has ended. */
  ended(latency: AnswerLatency, makingMs?: number): void {
    if (makingMs !== undefined) {
      this.#making.push(makingMs)
      if (this.#making.length > remembered) this.#making.shift()
    }
    for (const [step, histogram] of this.stepMs) {
      const ms = latency[countedSteps[step]]
      if (ms !== undefined) histogram.record(ms)
    }
  }
}
