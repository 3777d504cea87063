// One request and its response in uWebSockets.js, as the channel that the exchange uses.

import type {
  IncomingHead,
  ReplyChannel,
  SharedHeaders,
  SocketEvents,
  SocketHandshake,
} from "../exchange/Channel.ts"
import { statusLine } from "../Status.ts"
import type { SpareCork } from "./SpareResponse.ts"
import type { HttpRequest, HttpResponse, UpgradeContext } from "./Uws.ts"
import type { UserData } from "./UwsSocket.ts"

/** What an upgrade needs. */
interface Upgrade {
  readonly context: UpgradeContext
  readonly spareCork: SpareCork
}

const text = new TextDecoder()

/** Copies the head: uWS reuses its memory when the callback returns. */
export const headOf = (req: HttpRequest): IncomingHead => {
  const method = req.getCaseSensitiveMethod()
  const query: string | undefined = req.getQuery()
  const url = query ? `${req.getUrl()}?${query}` : req.getUrl()
  const headers: Record<string, string> = {}
  let headBytes = method.length + url.length
  let headerCount = 0
  req.forEach((name, value) => {
    headerCount++
    headBytes += name.length + value.length
    const before = headers[name]
    // Checks the type, because `constructor` is a legal header name that every object has.
    headers[name] = typeof before === "string" ? `${before}${name === "cookie" ? "; " : ", "}${value}` : value
  })
  return { method, url, headers, headBytes, headerCount, version: "1.1" }
}

export class UwsReply implements ReplyChannel {
  /** uWS accepts chunk lines that RFC 9112 forbids. */
  readonly readsChunksExactly = false
  readonly #res: HttpResponse
  readonly #possible: Upgrade | undefined
  #dropsData = false
  /** A copy of uWS's text. */
  #addressText: ArrayBuffer | undefined

  constructor(res: HttpResponse, possible?: Upgrade) {
    this.#res = res
    this.#possible = possible
  }

  get upgradable(): boolean {
    return this.#possible !== undefined
  }

  writeStatus(status: number): void {
    // uWS's default.
    if (status !== 200) this.#res.writeStatus(statusLine(status))
  }

  writeHeader(name: string, value: string): void {
    this.#res.writeHeader(name, value)
  }

  writeShared({ joined }: SharedHeaders): void {
    if (joined !== undefined) this.#res.writeHeader(joined[0], joined[1])
  }

  write(piece: string | Uint8Array): boolean {
    return this.#res.write(piece)
  }

  tryEnd(piece: Uint8Array, totalBytes: number): [boolean, boolean] {
    return this.#res.tryEnd(piece, totalBytes)
  }

  getWriteOffset(): number {
    return this.#res.getWriteOffset()
  }

  end(body?: string | Uint8Array, close = false): void {
    if (close) this.#res.end(body, true)
    else this.#res.end(body)
  }

  endWithoutBody(): void {
    this.#res.endWithoutBody()
  }

  /**
   * The body is written as part of the last header: uWS's own end would either continue to read the request or close at
   * once.
   */
  endUnread(body: string, withBody: boolean): void {
    this.#res.writeHeader("content-length", `${Buffer.byteLength(body)}\r\n\r\n${withBody ? body : ""}`)
  }

  onWritable(listener: () => void): void {
    this.#res.onWritable(() => {
      listener()
      return true
    })
  }

  onAborted(listener: () => void): void {
    this.#res.onAborted(listener)
  }

  onData(listener: (piece: Uint8Array, last: boolean) => void): void {
    this.#res.onData((buffer, last) => {
      if (!this.#dropsData) listener(new Uint8Array(buffer), last)
    })
  }

  /** uWS calls the handler for each chunk of a read, which may hold 87,000 of them, also of a connection that is to be closed. */
  dropData(): void {
    this.#dropsData = true
  }

  /** uWS answers `Expect: 100-continue` itself, with the head. */
  wantBody(): void {}

  pause(): void {
    this.#res.pause()
  }

  resume(): void {
    this.#res.resume()
  }

  close(): void {
    this.#res.close()
  }

  cork(write: () => void): void {
    this.#res.cork(write)
  }

  /** Pausing and resuming restarts uWS's timer of 10 to 12 s. */
  renewTimer(paused: boolean): void {
    if (!paused) this.#res.pause()
    this.#res.resume()
    if (paused) this.#res.pause()
  }

  namesProxiedPeer(): boolean {
    return this.#res.getProxiedRemoteAddress().byteLength > 0
  }

  keepAddress(): void {
    this.#addressText ??= this.#res.getRemoteAddressAsText()
  }

  address(): string | undefined {
    return this.#addressText === undefined ? undefined : plainAddress(this.#addressText)
  }

  /** In uWS's callback of the request its parser has corked the connection, and knows how to go on after an upgrade. */
  upgrade(live: SocketEvents, handshake: SocketHandshake): void {
    const { headers, inCallback, protocol } = handshake
    const { context, spareCork } = this.#possible as Upgrade
    const userData: UserData = { live }
    const key = headers["sec-websocket-key"] ?? ""
    const extensions = headers["sec-websocket-extensions"] ?? ""
    const upgrade = (): void => this.#res.upgrade(userData, key, protocol, extensions, context)
    if (inCallback) upgrade()
    else spareCork(upgrade)
  }
}

const mappedIpv4 = "0000:0000:0000:0000:0000:ffff:"

/** uWS writes an IPv4 address on an IPv6 listener as an expanded mapped address; the program uses `1.2.3.4`. */
const plainAddress = (written: ArrayBuffer): string => {
  const address = text.decode(written)
  if (!address.startsWith(mappedIpv4)) return address
  const hex = address.slice(mappedIpv4.length).replace(":", "")
  return [0, 2, 4, 6].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".")
}

/** The client's address of an open connection. */
export const addressOf = (res: HttpResponse): string => plainAddress(res.getRemoteAddressAsText())
