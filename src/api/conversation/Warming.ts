// Lets the language model read what it is going to need, before it is asked: the instructions and the tools when a session gets
// them, and the user's words that stay as they are. Its answer then begins with a prompt of which most is read. Nothing is
// written, sent or charged; one at a time, the newest, when TurnTaking says so, and only as much as the user's allowance permits
// (ReadAhead). Beyond it nothing is read ahead, and the answer begins later.
import { Effect } from "effect"
import type { Item } from "#domain/conversation/Items.ts"
import type { ConversationTool } from "#domain/conversation/Settings.ts"
import { sizeUpTo } from "#domain/json/JsonWriter.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { ChatRequest } from "#domain/wire/Chat.ts"
import { beginChat } from "#services/chat/Chat.ts"
import type { AnswerServices } from "./Answer.ts"
import type { ConversationTerms } from "./ConversationTerms.ts"
import { chatRequestOf } from "./Prompt.ts"

/** What a picture counts, in characters of text. A guess: about a thousand tokens. */
const charactersOfPicture = 4_000

type WarmingTerms = Pick<ConversationTerms, "caller" | "history" | "models" | "settings"> & {
  readonly report: Pick<ConversationTerms["report"], "readsAhead">
}

export class Warming {
  readonly #terms: WarmingTerms
  readonly #news = new Signal()
  #items: ReadonlyArray<Item> | undefined
  /** The tools that were measured last, and about how long they are: they may be large, and seldom change. */
  #measured: { readonly tools: ReadonlyArray<ConversationTool>; readonly characters: number } = {
    tools: [],
    characters: 0,
  }

  constructor(terms: WarmingTerms) {
    this.#terms = terms
  }

  /** These items will be read. */
  expect(items: ReadonlyArray<Item>): void {
    this.#items = items
    this.#news.set()
  }

  /** Runs as long as the conversation. */
  readonly run: Effect.Effect<never, never, AnswerServices> = Effect.gen(
    { self: this },
    function* (this: Warming) {
      for (;;) {
        yield* this.#news.wait
        this.#news.clear()
        const items = this.#items
        // What it keeps would stay in memory after its items are deleted.
        this.#items = undefined
        if (items === undefined) continue
        const reading = Effect.acquireUseRelease(
          Effect.sync(() => this.#terms.history.read()),
          () => this.#read(items),
          (ended) => Effect.sync(ended),
        )
        // The newest wins: what is being read for an older one is not needed.
        yield* Effect.raceFirst(reading, this.#news.wait)
      }
    },
  )

  #read(items: ReadonlyArray<Item>): Effect.Effect<void, never, AnswerServices> {
    const { caller, models, report, settings } = this.#terms
    const { instructions, toolChoice, tools } = settings()
    const model = models.writes.entry.id
    const prompt = chatRequestOf({ model, instructions, items, tools, toolChoice, maxTokens: 1 })
    if (instructions === "" && tools.length === 0 && items.length === 0) return Effect.void
    const reading = report.readsAhead(this.#charactersOf(prompt, tools))
    if (reading === undefined) return Effect.void
    // With its first token the prompt has been read.
    const begun = beginChat(caller, prompt, "stream", { terms: { chargedIf: () => false } })
    const read = Effect.flatMap(begun, ({ generation }) => {
      reading.started(generation.started.promptTokens, generation.started.cachedTokens)
      return generation.end
    })
    return Effect.ensuring(Effect.ignore(Effect.scoped(read)), Effect.sync(reading.ended))
  }

  #charactersOf({ messages }: ChatRequest, tools: ReadonlyArray<ConversationTool>): number {
    if (tools !== this.#measured.tools)
      this.#measured = { tools, characters: sizeUpTo(tools, Number.POSITIVE_INFINITY) }
    let characters = this.#measured.characters
    for (const { content, tool_calls } of messages) {
      for (const call of tool_calls ?? []) characters += call.function.arguments.length
      if (typeof content === "string") characters += content.length
      else
        for (const part of content ?? [])
          characters += "text" in part ? part.text.length : charactersOfPicture
    }
    return characters
  }
}
