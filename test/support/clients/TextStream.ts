// Reads a streamed answer event by event as it arrives, and records how it ended. Strict: see EventStream.
import type { ReadableStreamDefaultReader, ReadableStreamReadResult } from "node:stream/web"
import { parseEventStream } from "./EventStream.ts"

type StreamEnd =
  /** The response was complete. */
  | "complete"
  /** The connection closed before the end of the response. */
  | "cut"

export class TextStream {
  /** Data of the events so far. */
  readonly events: Array<string> = []
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder("utf-8", { fatal: true })
  #rest = ""
  ended: StreamEnd | undefined

  constructor(response: Response) {
    if (response.body === null) throw new Error("no body")
    this.#reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>
  }

  /** Reads until `count` events have arrived or the stream has ended. */
  async take(count: number): Promise<ReadonlyArray<string>> {
    while (this.events.length < count && this.ended === undefined) await this.#read()
    return this.events
  }

  /** Reads to the end, complete or not. */
  async toEnd(): Promise<StreamEnd> {
    while (this.ended === undefined) await this.#read()
    return this.ended
  }

  /** Closes the connection. */
  leave(): Promise<void> {
    return this.#reader.cancel()
  }

  async #read(): Promise<void> {
    let next: ReadableStreamReadResult<Uint8Array>
    try {
      next = await this.#reader.read()
    } catch {
      this.ended = "cut"
      return
    }
    if (next.done) {
      if (this.#rest !== "") throw new Error(`the last event is not finished: ${JSON.stringify(this.#rest)}`)
      this.ended = "complete"
      return
    }
    this.#rest += this.#decoder.decode(next.value, { stream: true })
    const end = this.#rest.lastIndexOf("\n\n")
    if (end < 0) return
    this.events.push(...parseEventStream(this.#rest.slice(0, end + 2)))
    this.#rest = this.#rest.slice(end + 2)
  }
}

interface Chunk {
  readonly choices: ReadonlyArray<{
    readonly delta?: { readonly content?: string }
    readonly text?: string
    readonly finish_reason?: string | null
  }>
}

/** The chunks among events: everything but `[DONE]`. */
const chunksOf = (events: ReadonlyArray<string>): ReadonlyArray<Chunk> =>
  events.filter((data) => data !== "[DONE]").map((data) => JSON.parse(data) as Chunk)

/** The text that a client shows. */
export const textOf = (events: ReadonlyArray<string>): string =>
  chunksOf(events)
    .flatMap(({ choices }) => choices ?? [])
    .map((choice) => choice.delta?.content ?? choice.text ?? "")
    .join("")
