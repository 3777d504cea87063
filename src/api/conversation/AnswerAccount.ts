// Where the time of one answer went, told when it has ended: to the node's meters, to traces, and to a client that asked for it.
import { Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { AnswerCounts, ResponseStatus } from "#domain/conversation/Answers.ts"
import { type AnswerTimes, latencyObject } from "#domain/conversation/AnswerTimes.ts"
import type { ConversationMeters } from "#domain/conversation/ConversationMeters.ts"
import { latencyEvent } from "#domain/conversation/Settings.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { Facts, TracedWork } from "#http/TracedWork.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import type { SessionTrace } from "../tracing/SessionTrace.ts"

export interface AnswerAccountTerms {
  readonly tell: Tell
  readonly times: AnswerTimes
  readonly meters: ConversationMeters
  /** Undefined where no traces are exported. */
  readonly trace: SessionTrace | undefined
  /** Whether the client gets `response.latency`. */
  readonly tellsLatency: boolean
}

interface EndedAnswer {
  readonly id: string
  readonly status: ResponseStatus
  readonly counts: AnswerCounts
  /** Its record for traces. */
  readonly work: TracedWork | undefined
}

/** The attributes of an answer's span. */
const factsOf = (
  { notes }: TracedWork,
  { counts, status }: EndedAnswer,
  latency: ReturnType<typeof latencyObject>,
): Facts => {
  const times = Object.entries(latency).flatMap(([name, value]) =>
    typeof value === "number" ? [[`edgewise.${name}`, value]] : [],
  )
  return {
    "edgewise.request_id": notes.requestId,
    "edgewise.outcome": status,
    "edgewise.input_tokens": counts.inputTokens,
    "edgewise.output_tokens": counts.outputTokens,
    "edgewise.prepared": latency.prepared ? 1 : 0,
    ...Object.fromEntries(times),
  }
}

export const accountFor = (
  { meters, tell, tellsLatency, times, trace }: AnswerAccountTerms,
  ended: EndedAnswer,
): Effect.Effect<void, SocketError> =>
  Effect.gen(function* () {
    const latency = times.latency(yield* monotonicMs)
    meters.ended(latency, times.makingMs)
    const told = latencyObject(latency)
    if (ended.work !== undefined && trace !== undefined) {
      trace.parts++
      trace.inputTokens += ended.counts.inputTokens
      trace.outputTokens += ended.counts.outputTokens
      ended.work.end(factsOf(ended.work, ended, told), ended.status === "failed")
    }
    if (tellsLatency) yield* tell(latencyEvent, { response_id: ended.id, ...told })
  })
