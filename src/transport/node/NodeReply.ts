// One request and its response in Node's own HTTP server, as the channel that the exchange uses. The head and the end go
// through Node's ServerResponse, which knows about HTTP/1.0, keep-alive and the order of pipelined responses. The pieces
// of a body of unknown length are framed here and written to the socket in one call each: ServerResponse makes four
// writes of each.
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type {
  IncomingHead,
  ReplyChannel,
  SharedHeaders,
  SocketEvents,
  SocketHandshake,
} from "../exchange/Channel.ts"
import { statusLine } from "../Status.ts"

/** Joins the values of repeated headers, and counts what uWebSockets.js counts. */
export const headOf = ({ httpVersion, method = "", rawHeaders, url = "" }: IncomingMessage): IncomingHead => {
  const headers: Record<string, string> = {}
  let headBytes = method.length + url.length
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const value = rawHeaders[at + 1] as string
    headBytes += name.length + value.length
    const before = headers[name]
    // Checks the type, because `constructor` is a legal header name that every object has.
    headers[name] = typeof before === "string" ? `${before}${name === "cookie" ? "; " : ", "}${value}` : value
  }
  return { method, url, headers, headBytes, headerCount: rawHeaders.length / 2, version: httpVersion }
}

/** Anything but printable ASCII and tabs. */
const unusual = /[^\t\x20-\x7e]/

/** Node sends header values as Latin-1 and refuses control characters; uWebSockets.js sends UTF-8. */
const headerText = (value: string): string =>
  unusual.test(value)
    ? // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be sent.
      Buffer.from(value.replace(/[\x00-\x08\x0a-\x1f\x7f]/g, " ")).toString("latin1")
    : value

const nothing = new Uint8Array(0)
const ignore = (): void => {}

/** The connection of a response, as far as the response uses it. */
export interface ReplyConnection {
  readonly socket: Socket
  readonly address: string
  /** True if no request is answered after this one. */
  closesAfter(reply: NodeReply): boolean
  /** The response is complete, and perhaps not sent yet. */
  ended(): void
  /** The kernel has the whole response. */
  finished(reply: NodeReply): void
  /** Closes the connection, and tells the exchange within the call. */
  destroy(options: { readonly reset: boolean }): void
  /** The socket is a WebSocket's from now on. */
  upgraded(request: IncomingMessage, early: Buffer, live: SocketEvents, headers: ReadonlyArray<string>): void
}

export class NodeReply implements ReplyChannel {
  readonly readsChunksExactly = true
  readonly upgradable: boolean
  readonly request: IncomingMessage
  /** True once the response is complete, sent or not. */
  ended = false
  readonly #connection: ReplyConnection
  readonly #response: ServerResponse
  readonly #early: Buffer | undefined
  #expectsContinue: boolean
  #status = 200
  /** Name, value, name, value. */
  #headers: Array<string> = []
  #closes = false
  #headStored = false
  #takenBytes = 0
  #full = false
  /** The response went past ServerResponse, and its connection waits to be closed. */
  #lingers = false
  #writable: () => void = ignore
  #left: () => void = ignore
  #malformed: ((problem: string) => void) | undefined

  /**
   * @param early bytes that came behind the head of a request that may become a WebSocket; undefined for others
   */
  constructor(
    connection: ReplyConnection,
    request: IncomingMessage,
    response: ServerResponse,
    options: { readonly expectsContinue: boolean; readonly early: Buffer | undefined },
  ) {
    this.#connection = connection
    this.request = request
    this.#response = response
    this.#early = options.early
    this.#expectsContinue = options.expectsContinue
    this.upgradable = options.early !== undefined
    response.once("finish", () => connection.finished(this))
  }

  writeStatus(status: number): void {
    this.#status = status
  }

  writeHeader(name: string, value: string): void {
    if (name === "connection") this.#closes = true
    else this.#headers.push(name, headerText(value))
  }

  writeShared({ list }: SharedHeaders): void {
    for (const [name, value] of list) this.#headers.push(name, value)
  }

  write(piece: string | Uint8Array): boolean {
    const { socket } = this.#connection
    if (!this.#headStored) {
      socket.cork()
      this.#storeHead()
      this.#response.flushHeaders()
      this.#writePiece(piece)
      process.nextTick(() => socket.uncork())
    } else this.#writePiece(piece)
    this.#full = socket.writableNeedDrain
    return !this.#full
  }

  /** A chunk, or for HTTP/1.0 a part of a body that ends with its connection. */
  #writePiece(piece: string | Uint8Array): void {
    const { socket } = this.#connection
    if (!this.#response.chunkedEncoding) {
      socket.write(piece)
    } else if (typeof piece === "string") {
      socket.write(`${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`)
    } else {
      socket.cork()
      socket.write(`${piece.length.toString(16)}\r\n`, "latin1")
      socket.write(piece)
      socket.write("\r\n", "latin1")
      socket.uncork()
    }
  }

  tryEnd(piece: Uint8Array, totalBytes: number): [boolean, boolean] {
    if (!this.#headStored) {
      this.#headers.push("content-length", String(totalBytes))
      this.#storeHead()
    }
    // Node keeps whatever it is given, so nothing is given while something waits.
    if (this.#full) return [false, false]
    this.#full = !this.#response.write(piece)
    this.#takenBytes += piece.length
    if (this.#takenBytes < totalBytes) return [!this.#full, false]
    this.#finish()
    return [true, true]
  }

  getWriteOffset(): number {
    return this.#takenBytes
  }

  end(body?: string | Uint8Array, close = false): void {
    if (this.#lingers) return this.close()
    if (close) this.#closes = true
    if (!this.#headStored) {
      // RFC 9110 8.6: never with these.
      if (this.#status >= 200 && this.#status !== 204) {
        const bytes = typeof body === "string" ? Buffer.byteLength(body) : (body?.length ?? 0)
        this.#headers.push("content-length", String(bytes))
      }
      this.#storeHead()
    }
    this.#finish(body)
  }

  endWithoutBody(): void {
    if (!this.#headStored) this.#storeHead()
    this.#finish()
  }

  /** Written past ServerResponse, which would close the connection at once. */
  endUnread(body: string, withBody: boolean): void {
    const lines = [
      `HTTP/1.1 ${statusLine(this.#status)}`,
      `date: ${new Date().toUTCString()}`,
      "connection: close",
    ]
    for (let at = 0; at < this.#headers.length; at += 2) {
      lines.push(`${this.#headers[at]}: ${this.#headers[at + 1]}`)
    }
    lines.push(`content-length: ${Buffer.byteLength(body)}`)
    this.#lingers = true
    const { socket } = this.#connection
    socket.cork()
    socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1")
    if (withBody) socket.write(body)
    socket.uncork()
  }

  #storeHead(): void {
    this.#headStored = true
    // A client that still waits for `100 Continue` may send its body or not, so the end of its request is uncertain.
    if (this.#closes || this.#expectsContinue || this.#connection.closesAfter(this)) {
      this.#headers.push("connection", "close")
    }
    this.#response.writeHead(this.#status, this.#headers)
  }

  #finish(body?: string | Uint8Array): void {
    this.ended = true
    this.#response.end(body)
    this.#connection.ended()
  }

  onWritable(listener: () => void): void {
    this.#writable = listener
  }

  onAborted(listener: () => void): void {
    this.#left = listener
  }

  onData(listener: (piece: Uint8Array, last: boolean) => void, malformed: (problem: string) => void): void {
    this.#malformed = malformed
    this.request.on("data", (piece: Buffer) => listener(piece, false))
    this.request.once("end", () => listener(nothing, true))
  }

  dropData(): void {
    this.request.removeAllListeners("data")
  }

  wantBody(): void {
    if (!this.#expectsContinue) return
    this.#expectsContinue = false
    this.#response.writeContinue()
  }

  pause(): void {
    this.request.pause()
  }

  resume(): void {
    this.request.resume()
  }

  /** A body that ends with its connection must not look complete, so its connection is reset. */
  close(): void {
    const endsWithConnection = this.#headStored && !this.ended && !this.#response.chunkedEncoding
    this.#connection.destroy({ reset: endsWithConnection })
  }

  cork(write: () => void): void {
    const { socket } = this.#connection
    socket.cork()
    try {
      write()
    } finally {
      socket.uncork()
    }
  }

  /** Node has no timer that an exchange would have to stop. */
  renewTimer(): void {}

  /** Node does not speak the PROXY protocol: such a request is malformed. */
  namesProxiedPeer(): boolean {
    return false
  }

  keepAddress(): void {}

  address(): string | undefined {
    return this.#connection.address
  }

  upgrade(live: SocketEvents, { protocol }: SocketHandshake): void {
    this.ended = true
    this.#response.detachSocket(this.#connection.socket)
    const headers = protocol === "" ? this.#headers : [...this.#headers, "sec-websocket-protocol", protocol]
    this.#connection.upgraded(this.request, this.#early ?? Buffer.alloc(0), live, headers)
  }

  // ---------------------------------------------------------------- for the connection

  drained(): void {
    this.#full = false
    this.#writable()
  }

  aborted(): void {
    if (!this.ended) this.#left()
  }

  /** True if the broken bytes belong to this request's body, and the exchange answers. */
  broken(problem: string): boolean {
    if (this.request.complete || this.#malformed === undefined) return false
    this.#malformed(problem)
    return true
  }
}
