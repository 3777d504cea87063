// HTTP/1.1 messages and WebSocket frames in recorded bytes. Pure; independent of endpoints.

export interface Head {
  /** Request line or status line. */
  readonly first: string
  /** Lower-case name → value. */
  readonly headers: ReadonlyMap<string, string>
  /** Position of the body. */
  readonly end: number
}

/** The head that begins at `at`; undefined if it is not complete. */
export const headAt = (data: Buffer, at: number): Head | undefined => {
  const end = data.indexOf("\r\n\r\n", at)
  if (end < 0) return undefined
  const [first = "", ...lines] = data.toString("latin1", at, end).split("\r\n")
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(":")
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
  }
  return { first, headers, end: end + 4 }
}

interface Body {
  readonly bytes: Buffer
  /** Position of the next message. */
  readonly end: number
  readonly isComplete: boolean
}

const chunkedAt = (data: Buffer, from: number): Body => {
  const parts: Array<Buffer> = []
  let at = from
  for (;;) {
    const line = data.indexOf("\r\n", at)
    const size = line < 0 ? Number.NaN : Number.parseInt(data.toString("latin1", at, line), 16)
    if (Number.isNaN(size) || data.length < line + 2 + size + 2) {
      return { bytes: Buffer.concat(parts), end: data.length, isComplete: false }
    }
    parts.push(data.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
    if (size === 0) return { bytes: Buffer.concat(parts), end: at, isComplete: true }
  }
}

export const bodyAt = (data: Buffer, { end, headers }: Head): Body => {
  if (/chunked/i.test(headers.get("transfer-encoding") ?? "")) return chunkedAt(data, end)
  const length = Number(headers.get("content-length") ?? 0)
  const bytes = data.subarray(end, end + length)
  return { bytes, end: end + bytes.length, isComplete: bytes.length === length }
}

/** A message on a WebSocket; fragments are joined. The payload of a client's message stays masked: nothing reads it. */
export interface Frame {
  readonly kind: "text" | "binary" | "close" | "ping" | "pong" | "compressed"
  readonly payload: Buffer
}

const kinds: Readonly<Record<number, Frame["kind"]>> = {
  1: "text",
  2: "binary",
  8: "close",
  9: "ping",
  10: "pong",
}

/** Complete frames from `from` on, and the position of the first incomplete one. */
export const framesIn = (
  data: Buffer,
  from: number,
): { readonly frames: ReadonlyArray<Frame>; readonly end: number } => {
  const frames: Array<Frame> = []
  let at = from
  let fragments: Array<Buffer> = []
  let kind: Frame["kind"] = "text"
  let messageAt = from
  while (data.length >= at + 2) {
    const first = data[at]!
    const short = data[at + 1]! & 0x7f
    const extra = short === 126 ? 2 : short === 127 ? 8 : 0
    const isMasked = (data[at + 1]! & 0x80) !== 0
    const start = at + 2 + extra + (isMasked ? 4 : 0)
    if (data.length < start) break
    const length =
      extra === 0 ? short : extra === 2 ? data.readUInt16BE(at + 2) : Number(data.readBigUInt64BE(at + 2))
    if (data.length < start + length) break
    const payload = data.subarray(start, start + length)
    at = start + length
    const opcode = first & 0x0f
    if (opcode >= 8) frames.push({ kind: kinds[opcode] ?? "pong", payload })
    else {
      if (opcode !== 0) kind = (first & 0x40) === 0 ? (kinds[opcode] ?? "binary") : "compressed"
      fragments.push(payload)
      if ((first & 0x80) === 0) continue
      frames.push({ kind, payload: fragments.length === 1 ? payload : Buffer.concat(fragments) })
      fragments = []
    }
    messageAt = at
  }
  return { frames, end: messageAt }
}

/** `data: …` of each event, in order; the last one may be cut. */
export const eventsIn = (text: string): ReadonlyArray<string> =>
  text.split("\n\n").flatMap((event, index, all) => (event === "" || index === all.length - 1 ? [] : [event]))
