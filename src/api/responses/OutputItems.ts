// The output items of a Responses reply, made from an engine's deltas in their order: an item for each run of thoughts, for
// each run of text, and for each call. At most one item is open; it is the last one.
import type { Reader } from "#engines/protocol/Reader.ts"
import type { DeltaDetail, GenerateFinish, TextDelta } from "#engines/protocol/Text.ts"
import { chatLogprob } from "../text/Logprobs.ts"

type Status = "in_progress" | "completed" | "incomplete"

interface Common {
  readonly id: string
  status: Status
}

export interface MessageItem extends Common {
  readonly kind: "message"
  text: string
  /** JSON texts: each delta is serialised when it arrives, because thousands at once would hold the event loop. */
  readonly logprobs: Array<string>
}

export interface CallItem extends Common {
  readonly kind: "call"
  /** The engine's number of the call. */
  readonly call: number
  readonly callId: string
  readonly name: string
  /** The arguments. */
  text: string
}

export interface ReasoningItem extends Common {
  readonly kind: "reasoning"
  text: string
}

export type Item = MessageItem | CallItem | ReasoningItem

/** Follows the items as they are made. Every item is added, grows, and is done before the next one is added. */
export interface ItemListener {
  added(item: Item, index: number): void
  /** `logprobs`: JSON texts of those of this piece. */
  grew(item: Item, index: number, piece: string, logprobs: ReadonlyArray<string>): void
  done(item: Item, index: number): void
}

const none: ReadonlyArray<string> = []

export class OutputItems implements Reader<TextDelta> {
  readonly items: Array<Item> = []
  #open: Item | undefined
  readonly #newId: () => string
  readonly #logprobs: boolean
  readonly #listener: ItemListener | undefined

  /** @param logprobs whether the reply has log probabilities */
  constructor(newId: () => string, logprobs: boolean, listener?: ItemListener) {
    this.#newId = newId
    this.#logprobs = logprobs
    this.#listener = listener
  }

  take({ detail, text }: TextDelta): void {
    if (detail === undefined) this.#text(text, none)
    else this.#detailed(detail, text)
  }

  #detailed({ logprobs, part }: DeltaDetail, text: string): void {
    switch (part?.kind) {
      case undefined: {
        const wanted = this.#logprobs ? (logprobs ?? []) : []
        this.#text(
          text,
          wanted.map((sampled) => JSON.stringify(chatLogprob(sampled))),
        )
        return
      }
      case "reasoning": {
        if (text === "") return
        const item =
          this.#open?.kind === "reasoning"
            ? this.#open
            : this.#add({ kind: "reasoning", id: `rs_${this.#newId()}`, status: "in_progress", text: "" })
        this.#grow(item, text, none)
        return
      }
      case "call":
        this.#add({
          kind: "call",
          id: `fc_${this.#newId()}`,
          status: "in_progress",
          call: part.call,
          callId: `call_${this.#newId()}`,
          name: part.name,
          text: "",
        })
        return
      case "arguments":
        // The arguments of a call end where the next item begins, so they always belong to the open one.
        if (text === "" || this.#open?.kind !== "call" || this.#open.call !== part.call) return
        this.#grow(this.#open, text, none)
    }
  }

  #text(text: string, logprobs: ReadonlyArray<string>): void {
    if (text === "" && logprobs.length === 0) return
    const item = this.#open?.kind === "message" ? this.#open : this.#addMessage()
    for (const one of logprobs) item.logprobs.push(one)
    this.#grow(item, text, logprobs)
  }

  #addMessage(): MessageItem {
    const id = `msg_${this.#newId()}`
    return this.#add({ kind: "message", id, status: "in_progress", text: "", logprobs: [] })
  }

  #add<I extends Item>(item: I): I {
    this.#close("completed")
    this.items.push(item)
    this.#open = item
    this.#listener?.added(item, this.items.length - 1)
    return item
  }

  #grow(item: Item, piece: string, logprobs: ReadonlyArray<string>): void {
    item.text += piece
    this.#listener?.grew(item, this.items.length - 1, piece, logprobs)
  }

  #close(status: Status): void {
    const open = this.#open
    if (open === undefined) return
    open.status = status
    this.#open = undefined
    this.#listener?.done(open, this.items.length - 1)
  }

  /** The generation has ended. An answer without text and calls is a message without text. */
  end(finish: GenerateFinish): void {
    const isCut = finish === "length"
    if (!isCut && this.items.every(({ kind }) => kind === "reasoning")) this.#addMessage()
    this.#close(isCut ? "incomplete" : "completed")
  }

  /** The generation has failed: the open item stays incomplete, and the listener is not called. */
  fail(): void {
    if (this.#open !== undefined) this.#open.status = "incomplete"
    this.#open = undefined
  }
}
