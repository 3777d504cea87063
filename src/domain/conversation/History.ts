// The items of one conversation in their order, bounded in number and in memory. Pure.
import { Holding, MemoryBudget } from "../queues/MemoryBudget.ts"
import { InvalidRequest } from "../wire/Errors.ts"
import { memoryOf } from "../wire/Json.ts"
import { noMemory } from "../wire/RealtimeProtocol.ts"
import { answerItem, type Item } from "./Items.ts"
import type { SpokenText } from "./SpokenText.ts"

/** Most items. A guess: two hours of turns of ten seconds, with a call each, are fewer. */
export const maxItems = 4_096

/** Memory of all items that a client adds, bytes (`memoryOf`). A guess: above every context that is deployed, and ten pictures. */
export const maxItemBytes = 8 * 1024 * 1024

/**
 * What is spoken and what the model writes is kept beyond that, by so much: an hour of speech and answers has half of it. Beyond it
 * the conversation gives no more answers. A guess.
 */
const spareItemBytes = 1024 * 1024

const unbounded = () =>
  new Holding(new MemoryBudget({ node: Number.POSITIVE_INFINITY, user: Number.POSITIVE_INFINITY }), "")

interface Entry {
  item: Item
  /** What is counted of it. */
  bytes: number
  /** Of an answer that was spoken. */
  spoken: SpokenText | undefined
}

/** Memory of something that is not in the conversation any more and that an answer may still read. */
interface Dropped {
  /** How many readers had begun. */
  readonly readers: number
  readonly bytes: number
}

const bytesOf = (item: Item, spoken: SpokenText | undefined): number => memoryOf(item) + (spoken?.bytes ?? 0)

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })

export class History {
  readonly #holding: Holding
  #entries: Array<Entry> = []
  #bytes = 0
  /** The numbers of the readers that have not ended, in their order. */
  #readers: ReadonlyArray<number> = []
  #nextReader = 0
  #dropped: ReadonlyArray<Dropped> = []
  /** How often it has changed. */
  version = 0

  /** `holding`: counts the memory of the items. */
  constructor(holding: Holding = unbounded()) {
    this.#holding = holding
  }

  get items(): ReadonlyArray<Item> {
    return this.#entries.map(({ item }) => item)
  }

  item(id: string): Item | undefined {
    return this.#entry(id)?.item
  }

  hasCall(callId: string): boolean {
    return this.#entries.some(({ item }) => item.type === "function_call" && item.call_id === callId)
  }

  /** The id of the item before this one; null for none. */
  before(id: string): string | null {
    const at = this.#entries.findIndex(({ item }) => item.id === id)
    return this.#entries[at - 1]?.item.id ?? null
  }

  /** The words and the audio of an answer that was spoken. */
  spoken(id: string): SpokenText | undefined {
    return this.#entry(id)?.spoken
  }

  /**
   * Adds an item after another: `root` is the beginning, absent the end. What was spoken or written by the model is `own`: it is
   * counted and not refused for its size. Returns the id of the item before it, null for none, or why it cannot be added.
   */
  add(
    item: Item,
    origin: "client" | "own",
    {
      after: previousId,
      spoken,
    }: { readonly after?: string | null | undefined; readonly spoken?: SpokenText | undefined } = {},
  ): string | null | InvalidRequest {
    if (this.#entry(item.id) !== undefined) return refusal("item.id", "is the id of another item")
    if (this.#entries.length >= maxItems)
      return refusal("item", `would be one of more than ${maxItems} items of the conversation: delete some`)
    const at = this.#positionAfter(previousId)
    if (at === undefined) return refusal("previous_item_id", "is no item of this conversation")
    const bytes = bytesOf(item, spoken)
    if (origin === "own") this.#holding.keep(bytes)
    else if (this.#bytes + bytes > maxItemBytes)
      return refusal("item", `would make the conversation larger than ${maxItemBytes} bytes: delete items`)
    else if (!this.#holding.take(bytes)) return noMemory("item", this.#holding)
    this.version++
    this.#entries.splice(at, 0, { item, bytes, spoken })
    this.#bytes += bytes
    return this.#entries[at - 1]?.item.id ?? null
  }

  /** The item with this id is now this, and so is what was spoken of it. An item that has been deleted stays deleted. */
  replace(item: Item, spoken = this.spoken(item.id)): void {
    const entry = this.#entry(item.id)
    if (entry === undefined) return
    this.version++
    const bytes = bytesOf(item, spoken)
    this.#bytes += bytes
    this.#holding.keep(bytes)
    this.#drop(entry.bytes)
    entry.item = item
    entry.spoken = spoken
    entry.bytes = bytes
  }

  /** Keeps the words that were heard in the first samples of an answer. */
  keepHeard(id: string, samples: number, spoken = this.spoken(id)): void {
    const item = this.item(id)
    if (spoken === undefined || item?.type !== "message") return
    const transcript = spoken.heard(samples)
    const status = transcript === spoken.text ? item.status : "incomplete"
    this.replace(answerItem(id, status, [{ type: "output_audio", transcript }]), spoken)
  }

  /**
   * A client says that it has played the first samples of an answer: keeps their words. A position beyond the answer's end, or beyond that
   * of an earlier cut, is that end. Gives the samples that are left; undefined where there is no such answer.
   */
  truncate(id: string, samples: number): number | undefined {
    const spoken = this.spoken(id)?.cut(samples)
    if (spoken !== undefined) this.keepHeard(id, spoken.end, spoken)
    return spoken?.end
  }

  /** False if there is no such item. */
  delete(id: string): boolean {
    const entry = this.#entry(id)
    if (entry === undefined) return false
    this.version++
    this.#entries = this.#entries.filter((other) => other !== entry)
    this.#drop(entry.bytes)
    return true
  }

  /** Why it gives no more answers: it has as many items as it may, or has grown beyond its spare bytes, or the node's are used up. Undefined if it does. */
  get overflow(): InvalidRequest | undefined {
    if (this.#entries.length >= maxItems)
      return refusal("conversation", `has ${maxItems} items: delete some before the next answer`)
    const most = maxItemBytes + spareItemBytes
    if (this.#bytes > most)
      return refusal(
        "conversation",
        `holds more than ${most} bytes of items: delete some before the next answer`,
      )
    return this.#holding.isOver ? noMemory("conversation", this.#holding) : undefined
  }

  /**
   * Something reads the present items until the returned function is called. What is deleted or cut meanwhile stays in memory, and
   * is counted, as long.
   */
  read(): () => void {
    const reader = this.#nextReader++
    this.#readers = [...this.#readers, reader]
    return () => {
      if (!this.#readers.includes(reader)) return
      this.#readers = this.#readers.filter((other) => other !== reader)
      const oldest = this.#readers[0] ?? this.#nextReader
      const isRead = ({ readers }: Dropped) => readers > oldest
      for (const dropped of this.#dropped) if (!isRead(dropped)) this.#holding.giveBack(dropped.bytes)
      this.#dropped = this.#dropped.filter(isRead)
    }
  }

  #drop(bytes: number): void {
    this.#bytes -= bytes
    if (this.#readers.length === 0) return this.#holding.giveBack(bytes)
    const last = this.#dropped.at(-1)
    // One entry for each number of readers.
    const before = last?.readers === this.#nextReader ? last.bytes : 0
    const others = before === 0 ? this.#dropped : this.#dropped.slice(0, -1)
    this.#dropped = [...others, { readers: this.#nextReader, bytes: before + bytes }]
  }

  #entry(id: string): Entry | undefined {
    return this.#entries.find(({ item }) => item.id === id)
  }

  #positionAfter(previousId: string | null | undefined): number | undefined {
    if (previousId === undefined || previousId === null) return this.#entries.length
    if (previousId === "root") return 0
    const at = this.#entries.findIndex(({ item }) => item.id === previousId)
    return at < 0 ? undefined : at + 1
  }
}
