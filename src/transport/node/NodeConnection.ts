// One TCP or TLS connection of Node's own HTTP server: its requests one after the other, bytes that are no request, and
// the deadlines that Node does not have.
import { type IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { nowMs, type Watched } from "../Deadlines.ts"
import type { SocketEvents } from "../exchange/Channel.ts"
import type { Dispatcher } from "../exchange/Dispatcher.ts"
import { detailBody, jsonContentType, statusLine } from "../Status.ts"
import { headOf, NodeReply, type ReplyConnection } from "./NodeReply.ts"
import type { NodeSockets } from "./NodeSocket.ts"
import { SlicedReads } from "./SlicedReads.ts"

/**
 * Requests, and bytes of their heads, that wait for their turn on one connection. A browser sends none ahead; a client
 * that pipelines sends a few. What comes behind these is not answered, and the connection is closed. Guesses.
 */
const waitingRequests = 32
const waitingBytes = 64 * 1024
/** Requests that are ignored behind the last one that waits. With more, the connection is closed at once. A guess. */
const ignoredRequests = 1_024

interface WaitingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse | undefined
  readonly expectsContinue: boolean
  readonly early: Buffer | undefined
}

export class NodeConnection implements ReplyConnection, Watched {
  listedAt = -1
  readonly socket: Socket
  readonly address: string
  readonly #dispatcher: Dispatcher
  readonly #sockets: NodeSockets
  #reads: SlicedReads | undefined
  #current: NodeReply | undefined
  /** The request whose head came last. */
  #arriving: IncomingMessage | undefined
  #waiting: Array<WaitingRequest> = []
  #waitingBytes = 0
  #ignored = 0
  /** What follows the requests that wait is not read as a request. */
  #closing = false
  #over = false
  /** Since when the bytes of an ended response, or of a request behind its response, have not moved. */
  #movedMs = 0
  #unsentBytes = 0
  #receivedBytes = 0
  /** When the response ended whose request still arrives, and the bytes that had arrived then. */
  #discardsSinceMs: number | undefined
  #discardsFrom = 0
  #closeAtMs = Number.POSITIVE_INFINITY

  constructor(socket: Socket, address: string, dispatcher: Dispatcher, sockets: NodeSockets) {
    this.socket = socket
    this.address = address
    this.#dispatcher = dispatcher
    this.#sockets = sockets
    socket.on("drain", () => this.#current?.drained())
    // A client that has closed its direction is taken to have left, as with uWebSockets.js.
    socket.on("end", () => {
      if (this.#current?.ended === false) socket.destroy()
    })
    socket.once("close", () => this.#closed())
  }

  /** Node's server reads the connection from now on. */
  accepted(): void {
    this.#reads = new SlicedReads(this.socket, {
      comes: () => {
        if (this.#arriving?.complete !== false) return "not"
        return this.#arriving.headers["transfer-encoding"] === undefined ? "in one piece" : "in chunks"
      },
      hasRoom: () => {
        const arriving = this.#arriving
        if (arriving === undefined || arriving.complete) return true
        return arriving.readableLength < arriving.readableHighWaterMark
      },
      // By Node, for responses that wait to be sent: its own note (_http_server.js), which nothing public tells.
      isHeldUp: () => (this.socket as { readonly _paused?: boolean })._paused === true,
    })
  }

  /** @param options.early as for NodeReply; such a request has no response of Node's making */
  request(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    options: { readonly expectsContinue?: boolean; readonly early?: Buffer } = {},
  ): void {
    const { expectsContinue = false, early } = options
    const one = { request, response, expectsContinue, early }
    this.#arriving = request
    // Node reads a connection no more that becomes another protocol's.
    if (early !== undefined) this.#reads?.end()
    if (this.#over) return
    if (this.#closing) return this.#ignore()
    if (this.#current === undefined) return this.#start(one)
    const bytes = request.rawHeaders.reduce((sum, text) => sum + text.length, request.url?.length ?? 0)
    if (this.#waiting.length === waitingRequests || this.#waitingBytes + bytes > waitingBytes) {
      this.#closing = true
      return this.#ignore()
    }
    this.#waitingBytes += bytes
    this.#waiting.push(one)
  }

  #ignore(): void {
    if (++this.#ignored > ignoredRequests) this.socket.destroy()
  }

  #start({ early, expectsContinue, request, response }: WaitingRequest): void {
    const own = response ?? this.#ownResponse(request)
    this.#current = new NodeReply(this, request, own, { early, expectsContinue })
    this.#dispatcher.onRequest(this.#current, headOf(request))
  }

  /** Node makes no response for a request that may become a WebSocket. */
  #ownResponse(request: IncomingMessage): ServerResponse {
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(this.socket)
    return response
  }

  closesAfter(reply: NodeReply): boolean {
    return reply.upgradable || (this.#closing && this.#waiting.length === 0)
  }

  ended(): void {
    if (this.socket.writableLength === 0) return
    this.#movedMs = nowMs()
    this.#unsentBytes = this.socket.writableLength
    this.#dispatcher.state.deadlines.watch(this)
  }

  finished(reply: NodeReply): void {
    if (this.#current !== reply || this.#over) return
    this.#dispatcher.state.deadlines.unwatch(this)
    this.#current = undefined
    if (this.#arriving?.complete === true) this.#arriving = undefined
    // Node has closed a connection whose response says so. What waits behind it is not served.
    if (!this.socket.writable) {
      this.#closing = true
      this.#waiting = []
      return
    }
    if (this.closesAfter(reply)) return this.socket.destroySoon()
    if (!reply.request.complete) this.#discard(reply)
    const next = this.#waiting.shift()
    if (next === undefined) {
      this.#waitingBytes = 0
      return
    }
    this.#start(next)
  }

  /** Reads the rest of an answered request, and drops it. */
  #discard({ request }: NodeReply): void {
    const { deadlines } = this.#dispatcher.state
    this.#discardsSinceMs = nowMs()
    this.#movedMs = this.#discardsSinceMs
    this.#discardsFrom = this.socket.bytesRead
    this.#receivedBytes = this.#discardsFrom
    deadlines.watch(this)
    request.once("end", () => {
      this.#discardsSinceMs = undefined
      if (this.#current === undefined) deadlines.unwatch(this)
    })
    request.resume()
  }

  /** Bytes that are no request, or a body that is not framed as its head says. */
  broken(error: NodeJS.ErrnoException): void {
    const { counters } = this.#dispatcher.state
    if (this.#over || this.#closing) return
    if (error.code === "HPE_HEADER_OVERFLOW") {
      counters.headsTooLarge++
      return this.#refuse(431, "headers: larger than 65536 bytes")
    }
    // A head that has not arrived in time, behind a request that still runs.
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && this.#current !== undefined) {
      this.#closing = true
      return
    }
    // The same without one, a reset, or an early end.
    if (error.code?.startsWith("HPE_") !== true || error.code === "HPE_INVALID_EOF_STATE") {
      return void this.socket.destroy()
    }
    counters.framingRefused++
    this.#closing = true
    const reason = (error as { readonly reason?: string }).reason ?? "malformed"
    if (this.#current === undefined) this.#refuse(400, `request: ${reason}`)
    else if (this.#waiting.length === 0) this.#current.broken(reason)
  }

  /** Answers bytes that never became a request. Behind other requests they are not answered. */
  #refuse(status: number, detail: string): void {
    this.#closing = true
    if (this.#current !== undefined) return
    const { deadlines, responseHeaders, settings } = this.#dispatcher.state
    const body = detailBody(detail)
    const lines = [
      `HTTP/1.1 ${statusLine(status)}`,
      "connection: close",
      `content-type: ${jsonContentType}`,
      `content-length: ${Buffer.byteLength(body)}`,
      ...responseHeaders.list.map(([name, value]) => `${name}: ${value}`),
    ]
    this.socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`)
    this.#closeAtMs = nowMs() + settings.lingerMs
    deadlines.watch(this)
  }

  upgraded(
    request: IncomingMessage,
    early: Buffer,
    live: SocketEvents,
    headers: ReadonlyArray<string>,
  ): void {
    this.#over = true
    this.#current = undefined
    this.#waiting = []
    this.#dispatcher.state.deadlines.unwatch(this)
    this.#sockets.open(request, this.socket, early, live, headers)
  }

  sweep(now: number): void {
    const { bodyBytesPerSecond, bodyGraceMs, bodyStallTimeoutMs, stallTimeoutMs } =
      this.#dispatcher.state.settings
    if (now >= this.#closeAtMs) return void this.socket.destroy()
    const { bytesRead, writableLength } = this.socket
    if (writableLength !== this.#unsentBytes || bytesRead !== this.#receivedBytes) this.#movedMs = now
    this.#unsentBytes = writableLength
    this.#receivedBytes = bytesRead
    const stillMs = now - this.#movedMs
    if (this.#current?.ended === true && stillMs >= stallTimeoutMs) {
      this.#dispatcher.state.counters.slowReadersCut++
      return void this.socket.destroy()
    }
    if (this.#discardsSinceMs === undefined) return
    const ageMs = now - this.#discardsSinceMs
    const slow = ageMs >= bodyGraceMs && bytesRead - this.#discardsFrom < (ageMs / 1_000) * bodyBytesPerSecond
    if (slow || stillMs >= bodyStallTimeoutMs) this.socket.destroy()
  }

  /** Node's own event comes a tick later. */
  destroy({ reset }: { readonly reset: boolean }): void {
    // TLS needs no reset: a connection that ends without TLS's own end is known to be incomplete.
    if (reset && !("encrypted" in this.socket)) this.socket.resetAndDestroy()
    else this.socket.destroy()
    this.#closed()
  }

  #closed(): void {
    const current = this.#current
    this.#over = true
    this.#waiting = []
    this.#current = undefined
    this.#dispatcher.state.deadlines.unwatch(this)
    current?.aborted()
  }
}
