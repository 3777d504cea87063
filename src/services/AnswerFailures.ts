// One log line for every answer that failed on this side: a status of 500 or more, or an answer that broke off after
// its head. Watches the ends of all listeners' answers; the code that made the answer has recorded the reason. Sockets
// report failures of their sessions themselves, with `reportFailure`. Never holds a query, a body or a text.
import { Effect, Layer, Option } from "effect"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { type OperatorLine, report, reporter } from "#domain/process/OperatorLog.ts"
import { knownMethod } from "#domain/process/PlainLine.ts"
import { CurrentNodeMeters, type EndedRequest } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { type FailureWords, type FindModel, failureWords, wasRefused } from "./FailureWords.ts"

const lineOf = (
  { action, error, model, reason }: FailureWords,
  line: Pick<OperatorLine, "event" | "facts" | "requestId">,
): OperatorLine => ({
  ...line,
  model,
  reason,
  action,
  facts: { ...line.facts, error },
  // A synthesis fails for different causes; the first word of its reason names the cause: input, voice, unknown, the
  // (engine).
  kind: [
    error,
    error === "SynthesisFailed" ? /^\w*/.exec(reason) : "",
    ...Object.values(line.facts ?? {}),
  ].join(" "),
})

/** Temporary unavailability is a warning; everything else that fails on this side is an error. */
const eventOf = (status: number, words: FailureWords) => {
  if (status === 503 || (words.error === "SynthesisFailed" && /voice|^input/.test(words.reason)))
    return "answer refused"
  return "answer failed"
}

/** The line of an answer that has ended, or undefined where it did not fail on this side. */
export const answerLine = (
  { method, notes, status }: EndedRequest,
  route: string,
  find: FindModel,
): OperatorLine | undefined => {
  if (status < 500 && (!notes.brokeOff || wasRefused(notes.failure))) return undefined
  const words = failureWords(notes.failure, find)
  return lineOf(words, {
    event: status < 500 ? "answer broke off" : eventOf(status, words),
    facts: { method: knownMethod(method), route, status },
    requestId: notes.requestId,
  })
}

const findIn =
  (registry: Option.Option<ModelRegistry["Service"]>): FindModel =>
  (id) =>
    Option.getOrUndefined(registry)?.find(id)

/** A session or a piece of work on a socket has failed; nothing is written for a refusal. */
export const reportFailure = (failure: unknown, route: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (wasRefused(failure)) return
    const words = failureWords(failure, findIn(yield* Effect.serviceOption(ModelRegistry)))
    const { requestId } = yield* CurrentRequest
    yield* report(lineOf(words, { event: "session failed", facts: { route }, requestId }))
  })

/** Reports that a transcription job has failed finally, or runs again after `againInMs`. */
export const reportJob = (
  job: { readonly id: string; readonly model: string },
  failure: unknown,
  againInMs?: number,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const words = failureWords(failure, findIn(yield* Effect.serviceOption(ModelRegistry)))
    yield* report({
      event: againInMs === undefined ? "transcription job failed" : "transcription job postponed",
      ...(wasRefused(failure) ? { level: "info" } : {}),
      model: job.model,
      reason: words.reason,
      action: words.action,
      facts: {
        job: job.id,
        error: words.error,
        ...(againInMs === undefined ? {} : { again_in_ms: Math.round(againInMs) }),
      },
    })
  })

/** Watches the answers of every listener that counts in the node's meters, with the models of this process if it has any. */
export const answerFailures = Layer.effectDiscard(
  Effect.gen(function* () {
    const meters = yield* CurrentNodeMeters
    const say = yield* reporter
    const find = findIn(yield* Effect.serviceOption(ModelRegistry))
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        meters.watch((ended, route) => {
          const line = answerLine(ended, route, find)
          if (line !== undefined) say(line)
        }),
      ),
      (stop) => Effect.sync(stop),
    )
  }),
)
