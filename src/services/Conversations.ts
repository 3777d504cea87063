// The conversations of the catalog that this node deploys. They have no engine: each names models of the registry. A reload of the
// catalog replaces them; sessions that have begun keep the models that they joined.
import { Context } from "effect"
import type { ConversationEntry } from "#domain/conversation/ConversationEntry.ts"

/** What a reload did, by id. */
export interface ConversationChanges {
  readonly added: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  readonly changed: ReadonlyArray<string>
  readonly unchanged: number
}

export class ConversationList {
  #entries: ReadonlyArray<ConversationEntry>

  constructor(entries: ReadonlyArray<ConversationEntry> = []) {
    this.#entries = entries
  }

  /** In the order of the catalog. */
  get all(): ReadonlyArray<ConversationEntry> {
    return this.#entries
  }

  /** New sessions see these. */
  replace(entries: ReadonlyArray<ConversationEntry>): ConversationChanges {
    const before = new Map(this.#entries.map((entry) => [entry.id, JSON.stringify(entry)]))
    const after = new Set(entries.map(({ id }) => id))
    this.#entries = entries
    const added = entries.filter(({ id }) => !before.has(id)).map(({ id }) => id)
    const changed = entries
      .filter((entry) => before.has(entry.id) && before.get(entry.id) !== JSON.stringify(entry))
      .map(({ id }) => id)
    return {
      added,
      changed,
      removed: [...before.keys()].filter((id) => !after.has(id)),
      unchanged: entries.length - added.length - changed.length,
    }
  }
}

/** None, where a layer does not say otherwise. */
export const Conversations = Context.Reference<ConversationList>("edgewise/services/Conversations", {
  defaultValue: () => new ConversationList(),
})
