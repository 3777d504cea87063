// A minimal scanner of HTTP/1.1 replies that finds their end: status, body framing, and the number of server-sent
// events. Holds the state of one connection. Pure.
//
// An event is counted at its empty line. JSON escapes line feeds, so two of them in a row inside a body are always
// an event's end; the client parses no JSON while time is measured.

const CR = 13
const LF = 10

/** Longest head and longest chunk-size line in bytes; a bench's server sends a few hundred bytes. */
const headBytes = 16 * 1024
const sizeLineBytes = 32

/** Bytes of the body's last two pieces that are kept: one of them has the usage of a stream, and some servers end it by another. */
const tailBytes = 8 * 1024

type Part = "head" | "size" | "data" | "sized" | "ended"

const headEnd = Buffer.from("\r\n\r\n")

export class ReplyScanner {
  status = 0
  part: Part = "head"
  /** Bytes of body so far, framing excluded. */
  bodyBytes = 0
  #head = Buffer.alloc(0)
  #sizeLine = ""
  /** Bytes left in the current chunk (its CRLF included) or in a body of known length. */
  #left = 0
  #lastChunk = false
  #previousLf = false
  readonly #tail = Buffer.alloc(tailBytes)
  #tailLength = 0
  /** Where the last piece begins in the tail. */
  #lastPiece = 0
  readonly #onBody: ((piece: Buffer) => void) | undefined

  /** `onBody` gets every piece of the body; it is valid during the call only. */
  constructor(onBody?: (piece: Buffer) => void) {
    this.#onBody = onBody
  }

  get ended(): boolean {
    return this.part === "ended"
  }

  /** The last two pieces of the body (HTTP chunks), the last alone if both are too long; or the start of a body of known length. */
  get tail(): string {
    return this.#tail.toString("utf8", 0, this.#tailLength)
  }

  /** Prepares for the next reply on the same connection. */
  reset(): void {
    this.status = 0
    this.part = "head"
    this.bodyBytes = 0
    this.#head = Buffer.alloc(0)
    this.#tailLength = 0
    this.#lastPiece = 0
    this.#previousLf = false
  }

  /** Reads `bytes` and returns the number of completed events. Bytes after the reply's end are ignored. */
  push(bytes: Buffer): number {
    let events = 0
    let at = 0
    while (at < bytes.length && this.part !== "ended") {
      if (this.part === "head") at = this.#readHead(bytes, at)
      else if (this.part === "size") at = this.#readSize(bytes, at)
      else {
        const end = Math.min(bytes.length, at + this.#left)
        // A chunk's CRLF is counted in `left` but is not part of the body.
        const bodyEnd = this.part === "data" ? Math.min(end, at + Math.max(0, this.#left - 2)) : end
        if (bodyEnd > at) events += this.#readBody(bytes, at, bodyEnd)
        this.#left -= end - at
        at = end
        if (this.#left === 0) this.#partEnded()
      }
    }
    return events
  }

  #readHead(bytes: Buffer, at: number): number {
    const before = this.#head.length
    this.#head = Buffer.concat([this.#head, bytes.subarray(at)])
    const end = this.#head.indexOf(headEnd)
    if (end < 0) {
      if (this.#head.length > headBytes) throw new Error("a reply head that does not end")
      return bytes.length
    }
    const head = this.#head.toString("latin1", 0, end)
    this.status = Number(head.slice(9, 12))
    const length = /^content-length:\s*(\d+)/im.exec(head)?.[1]
    if (/^transfer-encoding:\s*chunked/im.test(head)) this.part = "size"
    else if (length === undefined) throw new Error("a reply without length or chunks")
    else {
      this.#left = Number(length)
      this.part = this.#left === 0 ? "ended" : "sized"
    }
    return at + end + headEnd.length - before
  }

  #readSize(bytes: Buffer, at: number): number {
    for (let next = at; next < bytes.length; next++) {
      const byte = bytes[next]
      if (byte === LF) {
        const size = Number.parseInt(this.#sizeLine, 16)
        if (Number.isNaN(size)) throw new Error("a chunk without a size")
        this.#sizeLine = ""
        this.#startChunk(size)
        return next + 1
      }
      if (byte !== CR) this.#sizeLine += String.fromCharCode(byte ?? 0)
      if (this.#sizeLine.length > sizeLineBytes) throw new Error("a chunk size that does not end")
    }
    return bytes.length
  }

  #startChunk(size: number): void {
    this.part = "data"
    // The last chunk is empty; its CRLF ends the reply, because these servers send no trailers.
    this.#left = size + 2
    this.#lastChunk = size === 0
    if (size === 0) return
    const before = this.#tailLength - this.#lastPiece
    if (before + size <= tailBytes) this.#tail.copyWithin(0, this.#lastPiece, this.#tailLength)
    this.#lastPiece = before + size <= tailBytes ? before : 0
    this.#tailLength = this.#lastPiece
  }

  #partEnded(): void {
    this.part = this.part === "sized" || this.#lastChunk ? "ended" : "size"
  }

  #readBody(bytes: Buffer, start: number, end: number): number {
    this.bodyBytes += end - start
    this.#onBody?.(bytes.subarray(start, end))
    this.#tailLength += bytes.copy(this.#tail, this.#tailLength, start, end)
    let events = 0
    let from = start
    for (;;) {
      const lf = bytes.indexOf(LF, from)
      if (lf < 0 || lf >= end) {
        if (from < end) this.#previousLf = false
        return events
      }
      if (lf > from) this.#previousLf = false
      if (this.#previousLf) events++
      this.#previousLf = !this.#previousLf
      from = lf + 1
    }
  }
}

/** The completion tokens in a reply's last pieces, if they have them. */
export const completionTokensIn = (tail: string): number | undefined => {
  const found = /"completion_tokens":(\d+)/.exec(tail)?.[1]
  return found === undefined ? undefined : Number(found)
}
