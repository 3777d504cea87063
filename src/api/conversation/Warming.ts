// Lets the language model read what it is going to need, before it is asked: the instructions and the tools when a session gets
// them, and the user's words that stay as they are. Its answer then begins with a prompt of which most is read. Nothing is
// written, sent or charged; one at a time, the newest, and few, because it costs the caller nothing.
import { Effect } from "effect"
import { Signal } from "#actors/live/Signal.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import type { Item } from "#domain/conversation/Items.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { beginChat } from "../text/ChatCompletions.ts"
import type { AnswerServices } from "./Answer.ts"
import type { FloorTerms } from "./Floor.ts"
import { chatRequestOf } from "./Prompt.ts"

/** How often a conversation may read ahead. A guess: instructions come once, and a turn has a few lasting pieces of text. */
const allowance = { burst: 4, perSecond: 0.1 }

export class Warming {
  private readonly terms: Pick<FloorTerms, "caller" | "models" | "settings">
  private readonly news = new Signal()
  private items: ReadonlyArray<Item> | undefined

  constructor(terms: Pick<FloorTerms, "caller" | "models" | "settings">) {
    this.terms = terms
  }

  /** These items will be read. */
  expect(items: ReadonlyArray<Item>): void {
    this.items = items
    this.news.set()
  }

  /** Runs as long as the conversation. */
  readonly run: Effect.Effect<never, never, AnswerServices> = Effect.gen(
    { self: this },
    function* (this: Warming) {
      const bucket = new TokenBucket(allowance, yield* monotonicMs)
      for (;;) {
        yield* this.news.wait
        this.news.clear()
        if (this.items === undefined || !bucket.spend(1, yield* monotonicMs)) continue
        // The newest wins: what is being read for an older one is not needed.
        yield* Effect.raceFirst(this.read(this.items), this.news.wait)
      }
    },
  )

  private read(items: ReadonlyArray<Item>): Effect.Effect<void, never, AnswerServices> {
    const { caller, models, settings } = this.terms
    const { instructions, toolChoice, tools } = settings()
    const model = models.writes.entry.id
    const prompt = chatRequestOf({ model, instructions, items, tools, toolChoice, maxTokens: 1 })
    if (instructions === "" && tools.length === 0 && items.length === 0) return Effect.void
    // With its first token the prompt has been read.
    const begun = beginChat(caller, prompt, "stream", { terms: { chargedIf: () => false } })
    return Effect.ignore(Effect.scoped(Effect.flatMap(begun, ({ generation }) => generation.end)))
  }
}
