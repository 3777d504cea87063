// One generation of a completions socket, from its frame to `done` or `error`: a text completion, or a chat where the frame
// has messages (protocol 7.6).
import { Effect } from "effect"
import type { ChatStartFrame, GenerationId, StartFrame } from "#domain/wire/events/TextEvents.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { beginChat } from "#services/chat/Chat.ts"
import type { Generation } from "#services/Generation.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { GenerationTrace } from "../tracing/GenerationTrace.ts"
import { replyIn } from "./ChatReply.ts"
import { ChatChunks } from "./ChatStream.ts"
import { CompletionChunks } from "./CompletionReply.ts"
import { beginCompletion } from "./Completions.ts"
import type { Outbox } from "./Outbox.ts"
import { finishesOf, usageOf } from "./TextHead.ts"

export type Start = typeof StartFrame.Type | typeof ChatStartFrame.Type

interface Begun {
  readonly generation: Generation
  readonly chunks: CompletionChunks | ChatChunks
}

const beginOn = Effect.fnUntraced(function* (caller: Principal, body: Start) {
  if ("messages" in body) {
    const chat = yield* beginChat(caller, body, "stream")
    const { head, terms } = replyIn(yield* Effect.context<never>(), body, chat)
    const begun: Begun = { generation: chat.generation, chunks: new ChatChunks(head, terms) }
    return begun
  }
  const { generation, head } = yield* beginCompletion(caller, body, "stream")
  const begun: Begun = { generation, chunks: new CompletionChunks(head) }
  return begun
})

export const runGeneration = (
  caller: Principal,
  body: Start,
  request_id: GenerationId,
  outbox: Outbox,
  trace: GenerationTrace | undefined,
) =>
  Effect.gen(function* () {
    const { chunks, generation } = yield* beginOn(caller, body)
    trace?.accepted(generation.started.promptTokens)
    const leave = outbox.add(generation)
    yield* Effect.addFinalizer(() => Effect.sync(leave))
    // Whether the first reply has been sent something.
    let begun = false
    generation.read({
      take: (delta) => {
        trace?.told(delta)
        const { detail, text } = delta
        if (detail === undefined && text === "") return
        const sent = detail === undefined ? [chunks.text(text, begun)] : chunks.detailed(detail, text, begun)
        for (const chunk of sent) outbox.push({ ...chunk, request_id })
        if (sent.length > 0 && (detail?.reply ?? 0) === 0) begun = true
      },
    })
    const end = yield* generation.end
    trace?.ended(end)
    for (const chunk of chunks.last(finishesOf(end))) outbox.push({ ...chunk, request_id })
    outbox.push({ type: "done", request_id, usage: usageOf(end, generation.started) })
  }).pipe(
    Effect.scoped,
    Effect.tapError((error: EdgeError) => reportFailure(error, "/v1/completions/ws")),
    Effect.catch((error: EdgeError) =>
      Effect.sync(() => {
        trace?.refused(error)
        outbox.push({ type: "error", error: detailOf(error), request_id })
      }),
    ),
    (generation) => (trace === undefined ? generation : trace.follow(generation)),
  )
