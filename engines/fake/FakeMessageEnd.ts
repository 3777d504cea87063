// The scripted probability that a user's message ends where it does.
import * as Effect from "effect/Effect"
import { textOf } from "../protocol/Contents.ts"
import {
  callFailed,
  type EngineError,
  type GenerateEnd,
  type GenerateRequest,
  type MessageEndTerms,
  type Outlet,
} from "../protocol/Engine.ts"
import type { FakeOptions } from "./Options.ts"

/** Behind every word but the last. */
const elsewhere = Math.log(0.001)

export const fakeMessageEnd = (
  options: (typeof FakeOptions.Type)["messageEnd"],
  request: GenerateRequest,
  { withinMs }: MessageEndTerms,
  promptTokens: number,
  out: Outlet<"text">,
): Effect.Effect<GenerateEnd, EngineError> =>
  Effect.gen(function* () {
    const end = { finishReason: "stop" as const, promptTokens, completionTokens: 0 }
    out.started({ promptTokens, cachedTokens: 0 })
    if (options === undefined) return { ...end, messageEnd: "template" as const }
    const { dawdles, fails, probability, tookMs } = options
    if (fails) return yield* callFailed("scripted failure")
    if (tookMs > withinMs && !dawdles) return { ...end, messageEnd: "slow" as const }
    if (tookMs > 0) yield* Effect.sleep(tookMs)
    const last = "turns" in request.prompt ? textOf(request.prompt.turns.at(-1)?.content ?? "") : ""
    const words = last.split(/\s+/u).filter((word) => word !== "")
    const values = words.map((_, at) => (at === words.length - 1 ? Math.log(probability) : elsewhere))
    return { ...end, messageEnd: { ends: values, stops: values } }
  })
