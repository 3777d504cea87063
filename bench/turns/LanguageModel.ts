// How probable the language model takes it that a transcript ends where it does, as a conversation asks it.
import { Effect } from "effect"
import { unfinished } from "#domain/activity/MessageEnds.ts"
import type { MessageEnd, TextDelta, TextEngine } from "#engines/protocol/Engine.ts"
import { collector, greedy } from "../../models/eval/Engines.ts"

const none: MessageEnd = { ends: [], stops: [] }

/** Behind no other message; nothing where there is no word, or the model cannot tell. */
export const messageEndOf = Effect.fnUntraced(function* (model: TextEngine, transcript: string) {
  const content = unfinished(transcript)
  if (content === "") return none
  const request = {
    prompt: { turns: [{ role: "user" as const, content }] },
    maxTokens: 1,
    sampling: greedy,
    stop: [],
    messageEnd: { withinMs: 10_000 },
  }
  const { messageEnd } = yield* model.generate(request, collector<TextDelta>())
  return typeof messageEnd === "object" ? messageEnd : none
})
