// The items of one conversation in their order, bounded. Pure.
import { InvalidRequest } from "../wire/Errors.ts"
import type { Item } from "./Items.ts"
import type { SpokenText } from "./SpokenText.ts"

/** Most items. A guess: two hours of turns of ten seconds, with a call each, are fewer. */
export const maxItems = 4_096

/** Characters of all items together. A guess: far above every context that is deployed. */
export const maxCharacters = 2_000_000

const charactersOf = (item: Item): number => {
  if (item.type === "function_call") return item.arguments.length
  if (item.type === "function_call_output") return item.output.length
  return item.content.reduce((sum, part) => {
    if ("text" in part) return sum + part.text.length
    return sum + ("image_url" in part ? part.image_url.length : (part.transcript?.length ?? 0))
  }, 0)
}

interface Entry {
  item: Item
  /** Of an answer that was spoken. */
  readonly spoken?: SpokenText
}

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })

export class History {
  private entries: Array<Entry> = []
  private characters = 0
  /** How often it has changed. */
  version = 0

  get items(): ReadonlyArray<Item> {
    return this.entries.map(({ item }) => item)
  }

  get lastId(): string | null {
    return this.entries.at(-1)?.item.id ?? null
  }

  item(id: string): Item | undefined {
    return this.entry(id)?.item
  }

  /** The id of the item before this one; null for none. */
  before(id: string): string | null {
    const at = this.entries.findIndex(({ item }) => item.id === id)
    return this.entries[at - 1]?.item.id ?? null
  }

  /** The words and the audio of an answer that was spoken. */
  spoken(id: string): SpokenText | undefined {
    return this.entry(id)?.spoken
  }

  /**
   * Adds an item after `previousId`: `root` is the beginning, absent the end. Returns the id of the item before it, null for
   * none, or why it cannot be added.
   */
  add(item: Item, previousId?: string | null, spoken?: SpokenText): string | null | InvalidRequest {
    if (this.entry(item.id) !== undefined) return refusal("item.id", "is the id of another item")
    const characters = charactersOf(item)
    if (this.entries.length >= maxItems)
      return refusal("item", `would be one of more than ${maxItems} items of the conversation`)
    if (this.characters + characters > maxCharacters)
      return refusal("item", `would make the conversation longer than ${maxCharacters} characters`)
    const at = this.positionAfter(previousId)
    if (at === undefined) return refusal("previous_item_id", "is no item of this conversation")
    this.version++
    this.entries.splice(at, 0, spoken === undefined ? { item } : { item, spoken })
    this.characters += characters
    return this.entries[at - 1]?.item.id ?? null
  }

  /** The item with this id is now this. An item that has been deleted stays deleted. */
  replace(item: Item): void {
    const entry = this.entry(item.id)
    if (entry === undefined) return
    this.version++
    this.characters += charactersOf(item) - charactersOf(entry.item)
    entry.item = item
  }

  /** False if there is no such item. */
  delete(id: string): boolean {
    const entry = this.entry(id)
    if (entry === undefined) return false
    this.version++
    this.entries = this.entries.filter((other) => other !== entry)
    this.characters -= charactersOf(entry.item)
    return true
  }

  private entry(id: string): Entry | undefined {
    return this.entries.find(({ item }) => item.id === id)
  }

  private positionAfter(previousId: string | null | undefined): number | undefined {
    if (previousId === undefined || previousId === null) return this.entries.length
    if (previousId === "root") return 0
    const at = this.entries.findIndex(({ item }) => item.id === previousId)
    return at < 0 ? undefined : at + 1
  }
}
