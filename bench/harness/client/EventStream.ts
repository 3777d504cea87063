// Reads Server-Sent Events as the standard describes them, however the bytes are split, because servers differ: lines end
// with LF, CRLF or CR; a space after the colon is optional; an event may have several data lines; comments and other
// fields are ignored. (https://html.spec.whatwg.org/multipage/server-sent-events.html)
import { RequestFailed } from "./Failures.ts"

/** Characters of an event, at most. A guess, far above a second of audio in base64. */
const longestEvent = 4 * 2 ** 20

export class EventStream {
  readonly #decoder = new TextDecoder()
  readonly #onData: (data: string, atMs: number) => void
  #rest = ""
  #data: string | undefined
  /** The last line ended with CR: an LF that follows belongs to it. */
  #afterCr = false
  /** Events with data so far. */
  events = 0

  constructor(onData: (data: string, atMs: number) => void) {
    this.#onData = onData
  }

  /** @throws RequestFailed if an event is too long */
  read(chunk: Uint8Array, atMs: number): void {
    let text = this.#rest + this.#decoder.decode(chunk, { stream: true })
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1)
    if (text !== "") this.#afterCr = false
    let from = 0
    for (;;) {
      const end = lineEnd(text, from)
      if (end === -1) break
      this.#line(text.slice(from, end), atMs)
      const isCr = text.charCodeAt(end) === 13
      from = end + (isCr && text.charCodeAt(end + 1) === 10 ? 2 : 1)
      if (isCr && from === text.length && text.charCodeAt(end + 1) !== 10) this.#afterCr = true
    }
    this.#rest = text.slice(from)
    if (this.#rest.length + (this.#data?.length ?? 0) > longestEvent) {
      throw new RequestFailed("too large", `an event longer than ${longestEvent / 2 ** 20} MB`)
    }
  }

  /** Some servers omit the empty line after the last event. */
  end(atMs: number): void {
    if (this.#rest !== "") this.#line(this.#rest, atMs)
    this.#rest = ""
    this.#line("", atMs)
  }

  #line(line: string, atMs: number): void {
    if (line === "") {
      if (this.#data === undefined) return
      const data = this.#data
      this.#data = undefined
      this.events++
      this.#onData(data, atMs)
    } else if (line.startsWith("data:")) {
      const value = line.slice(line.charCodeAt(5) === 32 ? 6 : 5)
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`
    }
  }
}

/** Position of the next LF or CR; -1 if there is none. */
const lineEnd = (text: string, from: number): number => {
  const lf = text.indexOf("\n", from)
  const cr = text.indexOf("\r", from)
  if (cr === -1) return lf
  return lf === -1 ? cr : Math.min(lf, cr)
}

/** The event as a JSON object; undefined if it is none. */
export const objectOf = (data: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
