// What the replies of both text endpoints have in common: the fields around the choices, and the usage.
import { Clock, Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { TokenUsage } from "#domain/wire/Chat.ts"
import type { GenerateEnd, GenerateFinish, GenerateStarted } from "#engines/protocol/Text.ts"
import { NewId } from "#http/Ids.ts"
import { fingerprintOf } from "./Fingerprint.ts"

export interface Head {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly system_fingerprint: string
}

export const headOf = Effect.fnUntraced(function* (prefix: "chatcmpl" | "cmpl", entry: ModelEntry) {
  const head: Head = {
    id: `${prefix}-${(yield* NewId)()}`,
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    model: entry.id,
    system_fingerprint: yield* fingerprintOf(entry),
  }
  return head
})

export const usageOf = (
  { completionTokens, imageTokens = 0, promptTokens, reasoningTokens = 0 }: GenerateEnd,
  { cachedTokens }: GenerateStarted,
): TokenUsage => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: {
    cached_tokens: cachedTokens,
    ...(imageTokens === 0 ? {} : { image_tokens: imageTokens }),
  },
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
})

/** How each of the replies ended. */
export const finishesOf = ({ finishReason, finishReasons }: GenerateEnd): ReadonlyArray<GenerateFinish> =>
  finishReasons ?? [finishReason]
