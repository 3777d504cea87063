// The outlet of a request that generates more replies than it returns. It keeps the pieces of all of them, which are at most as
// many as their tokens, and passes on those of the most likely replies once all have ended.
import * as Effect from "effect/Effect"
import type { GenerateStarted, Outlet, TextDelta } from "../../protocol/Engine.ts"
import type { ReplyEnd } from "../replies/Reply.ts"

export class BestReplies implements Outlet<"text"> {
  readonly #out: Outlet<"text">
  readonly #deltas: Array<TextDelta> = []
  readonly resumed = Effect.void

  constructor(out: Outlet<"text">) {
    this.#out = out
  }

  readonly started = (started: GenerateStarted): void => this.#out.started(started)
  readonly push = (delta: TextDelta): void => void this.#deltas.push(delta)
  readonly paused = (): boolean => false

  /** Pushes the `count` most likely replies, the most likely first, and returns their ends. */
  choose(ends: ReadonlyArray<ReplyEnd>, count: number): ReadonlyArray<ReplyEnd> {
    const ranked = ends
      .map((end, reply) => ({ end, reply }))
      .sort((a, b) => (b.end.likelihood ?? 0) - (a.end.likelihood ?? 0) || a.reply - b.reply)
      .slice(0, count)
    const completionTokens = ends.reduce((sum, end) => sum + end.completionTokens, 0)
    for (const [rank, { reply }] of ranked.entries())
      for (const { detail, text } of this.#deltas) {
        const { reply: of = 0, ...rest } = detail ?? {}
        if (of !== reply) continue
        const kept = rank === 0 ? rest : { ...rest, reply: rank }
        this.#out.push({
          text,
          completionTokens,
          ...(Object.keys(kept).length === 0 ? {} : { detail: kept }),
        })
      }
    return ranked.map(({ end }) => end)
  }
}
