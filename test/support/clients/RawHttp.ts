// A raw HTTP/1.1 client for tests. It sends exact bytes and parses responses, with details that other clients hide, such as whether
// a body was complete when its connection closed. Uses TLS if a listener of this process serves TLS on that port.
import net from "node:net"
import tls from "node:tls"
import { tlsPorts } from "../servers/TestCertificates.ts"

export interface RawResponse {
  readonly status: number
  readonly reason: string
  /** Lower-case name → values in order of arrival. */
  readonly headers: ReadonlyMap<string, ReadonlyArray<string>>
  readonly body: Buffer
  /** Sizes of the chunks of a chunked body, without the last, empty one. */
  readonly chunkSizes: ReadonlyArray<number>
  /** False if the connection closed before content-length bytes or the last chunk had arrived. */
  readonly complete: boolean
}

export const headerOf = (response: RawResponse, name: string): string | undefined =>
  response.headers.get(name)?.join(", ")

export const jsonOf = (response: RawResponse): unknown => JSON.parse(response.body.toString("utf8"))

/** Longest wait for anything: it only ends what hangs, and an engine that loads on a busy machine does not. */
const patienceMs = 60_000

export class RawConnection {
  readonly socket: net.Socket
  /** Completes when both directions are over, with an error's code if there was one. */
  readonly closed: Promise<string | undefined>
  #received: Buffer = Buffer.alloc(0)
  /** The buffer of `received`. It doubles when it is full, so that long replies are not copied with each piece. */
  #storage: Buffer = Buffer.alloc(0)
  #storedBytes = 0
  #over = false
  #changed: () => void = () => {}

  /** The TCP socket: the same one, or with TLS the one underneath. */
  readonly #bare: net.Socket

  private constructor(socket: net.Socket, bare: net.Socket) {
    this.socket = socket
    this.#bare = bare
    let code: string | undefined
    socket.on("data", (data) => {
      this.#store(data)
      this.#changed()
    })
    socket.on("error", (error: NodeJS.ErrnoException) => {
      code = error.code
    })
    this.closed = new Promise((resolve) =>
      socket.on("close", () => {
        this.#over = true
        this.#changed()
        resolve(code)
      }),
    )
  }

  static open(port: number, host = "127.0.0.1"): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const secure = tlsPorts.has(port)
      const bare = net.connect({ port, host, noDelay: true })
      const socket = secure ? tls.connect({ socket: bare, host }) : bare
      socket.once("error", reject)
      socket.once(secure ? "secureConnect" : "connect", () => {
        socket.off("error", reject)
        resolve(new RawConnection(socket, bare))
      })
    })
  }

  /** Completes when the kernel has the bytes, or the connection has closed. */
  send(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(bytes, () => resolve())
    })
  }

  /** All bytes that have arrived and are not part of a response read so far. */
  get unread(): Buffer {
    return this.#received
  }

  /** Whether both directions are over. */
  get isOver(): boolean {
    return this.#over
  }

  /** The next response; skips 1xx responses. Rejects if the connection closes before a complete head. */
  async response(options: { readonly toHead?: boolean } = {}): Promise<RawResponse> {
    for (;;) {
      const parsed = parseResponse(this.#received, this.#over, options.toHead === true)
      if (parsed !== undefined) {
        this.#received = this.#received.subarray(parsed.usedBytes)
        if (parsed.response.status >= 200) return parsed.response
      } else {
        if (this.#over)
          throw new Error(`closed before a response: ${JSON.stringify(this.#received.toString("latin1"))}`)
        await this.#change()
      }
    }
  }

  /** Waits until `received` has at least `count` bytes. */
  async bytes(count: number): Promise<Buffer> {
    while (this.#received.length < count) {
      if (this.#over) throw new Error(`closed after ${this.#received.length} of ${count} bytes`)
      await this.#change()
    }
    return this.#received
  }

  /** Disconnects without a close, as a client that is killed does. */
  destroy(): void {
    this.socket.destroy()
  }

  /** Disconnects with a reset of the TCP connection. */
  reset(): void {
    this.#bare.resetAndDestroy()
    this.socket.destroy()
  }

  /** Adds bytes to the buffer. Never overwrites bytes that were returned before. */
  #store(data: Buffer): void {
    const unread = this.#received.length
    if (this.#storedBytes + data.length > this.#storage.length) {
      const larger = Buffer.allocUnsafe(2 * (unread + data.length))
      this.#received.copy(larger)
      this.#storage = larger
      this.#storedBytes = unread
    }
    data.copy(this.#storage, this.#storedBytes)
    this.#storedBytes += data.length
    this.#received = this.#storage.subarray(this.#storedBytes - unread - data.length, this.#storedBytes)
  }

  #change(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("nothing came from the server")), patienceMs)
      this.#changed = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** Sends one request on a connection of its own and reads its response. */
export const rawRequest = async (
  port: number,
  request: string | Uint8Array,
  options: { readonly toHead?: boolean } = {},
): Promise<RawResponse> => {
  const connection = await RawConnection.open(port)
  try {
    await connection.send(request)
    return await connection.response(options)
  } finally {
    connection.destroy()
  }
}

/** The bytes of a request. A body gets a content-length unless the headers already frame it. */
export const requestBytes = (
  method: string,
  target: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string | Uint8Array,
): Buffer => {
  const lines = [`${method} ${target} HTTP/1.1`, "host: localhost"]
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  const payload = Buffer.from(body ?? "")
  if (body !== undefined && headers["content-length"] === undefined && !headers["transfer-encoding"]) {
    lines.push(`content-length: ${payload.length}`)
  }
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), payload])
}

/** A body in chunked framing, one chunk for each element. */
export const chunkedBytes = (chunks: ReadonlyArray<string | Uint8Array>): Buffer =>
  Buffer.concat([
    ...chunks.flatMap((chunk) => {
      const bytes = Buffer.from(chunk)
      return [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]
    }),
    Buffer.from("0\r\n\r\n"),
  ])

interface Parsed {
  readonly response: RawResponse
  readonly usedBytes: number
}

/** The response at the start of `data`, or undefined if more is needed and may still come. */
const parseResponse = (data: Buffer, over: boolean, toHead: boolean): Parsed | undefined => {
  const headEnd = data.indexOf("\r\n\r\n")
  if (headEnd < 0) return undefined
  const [statusLine = "", ...lines] = data.subarray(0, headEnd).toString("latin1").split("\r\n")
  const [, status = "0", ...reason] = statusLine.split(" ")
  const headers = new Map<string, Array<string>>()
  for (const line of lines) {
    const colon = line.indexOf(":")
    const name = line.slice(0, colon).toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()])
  }
  const head = { status: Number(status), reason: reason.join(" "), headers }
  const rest = data.subarray(headEnd + 4)
  if (!over && mustBeLonger(rest, headers)) return undefined
  const framed = bodyOf(rest, head.status, headers, toHead)
  if (!framed.complete && !over) return undefined
  const { usedBytes, ...body } = framed
  return { response: { ...head, ...body }, usedBytes: headEnd + 4 + usedBytes }
}

/** Parses a long chunked body only when its end has arrived: parsing at every piece takes a second for 12 MB. */
const mustBeLonger = (rest: Buffer, headers: ReadonlyMap<string, ReadonlyArray<string>>): boolean =>
  rest.length > 65_536 &&
  headers.get("transfer-encoding")?.[0] === "chunked" &&
  !rest.includes("\r\n0\r\n\r\n")

interface Framed {
  readonly body: Buffer
  readonly chunkSizes: ReadonlyArray<number>
  readonly complete: boolean
  readonly usedBytes: number
}

const bodyOf = (
  rest: Buffer,
  status: number,
  headers: ReadonlyMap<string, ReadonlyArray<string>>,
  toHead: boolean,
): Framed => {
  if (toHead || status < 200 || status === 204 || status === 304) {
    return { body: Buffer.alloc(0), chunkSizes: [], complete: true, usedBytes: 0 }
  }
  if (headers.get("transfer-encoding")?.[0] === "chunked") return unchunk(rest)
  const length = Number(headers.get("content-length")?.[0] ?? 0)
  const body = rest.subarray(0, length)
  return { body, chunkSizes: [], complete: body.length === length, usedBytes: body.length }
}

const unchunk = (rest: Buffer): Framed => {
  const parts: Array<Buffer> = []
  let at = 0
  const result = (complete: boolean): Framed => ({
    body: Buffer.concat(parts),
    chunkSizes: parts.map((part) => part.length),
    complete,
    usedBytes: at,
  })
  for (;;) {
    const lineEnd = rest.indexOf("\r\n", at)
    if (lineEnd < 0) return result(false)
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString("latin1"), 16)
    const start = lineEnd + 2
    if (rest.length < start + size + 2) {
      if (size > 0) parts.push(rest.subarray(start, start + size))
      at = rest.length
      return result(false)
    }
    if (size > 0) parts.push(rest.subarray(start, start + size))
    at = start + size + 2
    if (size === 0) return result(true)
  }
}
