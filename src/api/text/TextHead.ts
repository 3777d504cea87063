// What the replies of both text endpoints have in common: the fields around the choices, and the usage.
import { Clock, Context } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { TokenUsage } from "#domain/wire/Chat.ts"
import type { GenerateEnd, GenerateFinish, GenerateStarted } from "#engines/protocol/Text.ts"
import { NewId } from "#http/Ids.ts"
import { NodeIdentity } from "#http/NodeIdentity.ts"
import { fingerprintOf } from "./Fingerprint.ts"

export interface Head {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly system_fingerprint: string
}

/** `context`: of the running fiber. */
export const headIn = (
  context: Context.Context<never>,
  prefix: "chatcmpl" | "cmpl",
  entry: ModelEntry,
): Head => ({
  id: `${prefix}-${Context.get(context, NewId)()}`,
  created: Math.floor(Context.get(context, Clock.Clock).currentTimeMillisUnsafe() / 1000),
  model: entry.id,
  system_fingerprint: fingerprintOf(entry, Context.get(context, NodeIdentity).version),
})

export const usageOf = (
  { cachedTokens, completionTokens, imageTokens = 0, promptTokens, reasoningTokens = 0 }: GenerateEnd,
  started: GenerateStarted,
): TokenUsage => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: {
    cached_tokens: cachedTokens ?? started.cachedTokens,
    ...(imageTokens === 0 ? {} : { image_tokens: imageTokens }),
  },
  completion_tokens_details: { reasoning_tokens: reasoningTokens },
})

/** How each of the replies ended. */
export const finishesOf = ({ finishReason, finishReasons }: GenerateEnd): ReadonlyArray<GenerateFinish> =>
  finishReasons ?? [finishReason]
