// Server-sent events of a fetch answer, as the HTML standard parses them: lines end with LF, CRLF or CR, an event ends with
// an empty line, several `data` lines are joined with a line end, lines that begin with a colon are comments.

/** @typedef {{ readonly event: string, readonly data: string }} ServerEvent */

/** Turns pieces of a text into events. A piece may end anywhere, also inside a CRLF. */
export class EventParser {
  #rest = ""
  #event = ""
  /** @type {Array<string>} */
  #data = []
  #afterReturn = false

  /**
   * @param {string} piece
   * @returns {Array<ServerEvent>} events that this piece completes
   */
  push(piece) {
    /** @type {Array<ServerEvent>} */
    const events = []
    let text = piece
    // The LF of a CRLF whose CR ended the piece before.
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1)
    if (piece !== "") this.#afterReturn = piece.endsWith("\r")
    const lines = (this.#rest + text).split(/\r\n|\n|\r/)
    this.#rest = lines.pop() ?? ""
    for (const line of lines) {
      const event = this.#line(line)
      if (event !== undefined) events.push(event)
    }
    return events
  }

  /**
   * @param {string} line
   * @returns {ServerEvent | undefined}
   */
  #line(line) {
    if (line === "") {
      const data = this.#data
      const event = this.#event === "" ? "message" : this.#event
      this.#data = []
      this.#event = ""
      return data.length === 0 ? undefined : { event, data: data.join("\n") }
    }
    const colon = line.indexOf(":")
    if (colon === 0) return undefined
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (name === "data") this.#data.push(value)
    if (name === "event") this.#event = value
    return undefined
  }
}

/** A stream that ended before its `[DONE]`: the node or the connection failed. */
export class StreamCut extends Error {
  constructor() {
    super("the stream ended before its end")
    this.name = "StreamCut"
  }
}

/**
 * The JSON objects of an answer's events, until `[DONE]`.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<Record<string, unknown>, void>} fails with StreamCut where the stream has no `[DONE]`
 */
export async function* jsonEvents(body) {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parser = new EventParser()
  try {
    for (;;) {
      const read = await reader.read().catch((error) => {
        if (error instanceof Error && error.name === "AbortError") throw error
        throw new StreamCut()
      })
      if (read.done) throw new StreamCut()
      for (const { data } of parser.push(decoder.decode(read.value, { stream: true }))) {
        if (data === "[DONE]") return
        yield JSON.parse(data)
      }
    }
  } finally {
    // Also after an early `return` of the reader's loop, so that the node stops its work.
    reader.cancel().catch(() => {})
  }
}
