// One request and its response: the owner of uWS's `res`, which kills the process when it is touched after its end
// or abort. `done` is true from that moment; every other file of this folder asks it before it touches `res`.
// Created by UwsServer for each request. Knows neither routes nor what a body means.
import type { Fiber } from "effect"
import { Option } from "effect"
import { ClientAbort } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { BodyBlocks } from "#http/BodyBlocks.ts"
import type { RequestObserver } from "#http/NodeMeters.ts"
import { RequestContext } from "#http/RequestContext.ts"
import type { AnonymousBudget } from "../AnonymousBudget.ts"
import type { Deadlines } from "../Deadlines.ts"
import type { FairSendQueue } from "../FairSendQueue.ts"
import type { LoopTicks } from "../LoopTicks.ts"
import type { TransportCounters } from "../TransportCounters.ts"
import type { TransportSettings } from "../TransportSettings.ts"
import type { RequestBody } from "./RequestBody.ts"
import type { HttpRequest, HttpResponse } from "./Uws.ts"

/** What the exchanges of one listener share. */
export interface ListenerState {
  readonly settings: TransportSettings
  readonly counters: TransportCounters
  readonly deadlines: Deadlines
  readonly blocks: BodyBlocks
  readonly largeReplies: FairSendQueue
  readonly ticks: LoopTicks
  /** Lower-case name and value, sent with every response. */
  readonly responseHeaders: ReadonlyArray<readonly [string, string]>
  /** The same in one piece (see ReplyHead). */
  readonly joinedHeaders: readonly [string, string] | undefined
  /** For requests that bring no id of their own. */
  readonly newId: () => string
  /** Told of every answer that has ended. */
  readonly observer: RequestObserver | undefined
  /** Undefined where requests without a credential are not limited. */
  readonly anonymous: AnonymousBudget | undefined
  /** The listener stops: every response closes its connection. */
  closing: boolean
}

/** What has to let go when the exchange ends, for whatever reason. */
export interface Ending {
  readonly release: () => void
}

/** The third argument of uWS's upgrade handler, needed to upgrade and opaque otherwise. */
export type UpgradeContext = Parameters<HttpResponse["upgrade"]>[4]

/**
 * uWS closes a connection that sends its body slower than 16 KB/s, or that took no write, after 10 s, counted in steps
 * of 4 s (measured: 10 to 12 s). `renewTimer` at this pace keeps that from happening.
 */
export const RENEW_AFTER_MS = 3_000

const text = new TextDecoder()

export class Exchange {
  // The first four stand side by side in memory: what every write looks at.
  readonly listener: ListenerState
  readonly res: HttpResponse
  /** The response has ended, was aborted, or became a WebSocket. */
  done = false
  /** Inside the uWS callback that created or resumed the request: uWS has corked the socket already. */
  inCallback = true
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Lower-case names; repeated headers are joined. */
  readonly headers: Record<string, string>
  readonly headBytes: number
  /** What the answer's head will tell of the request (see ReplyHead). */
  readonly notes: RequestContext
  readonly upgradeContext: UpgradeContext | undefined
  body: RequestBody | undefined
  /** The persisted form of a multipart body, once asked for: shared by all views of the request. */
  multipart: HttpServerRequest["multipart"] | undefined
  reply: Ending | undefined
  /** Set while an answered connection waits to be closed (see Refusal). */
  linger: Ending | undefined
  headSent = false
  /** Of the answer, once its head is written (see ReplyHead). */
  status = 0
  upgraded = false
  /** The connection closes behind the answer, whatever the peer wants. */
  closesConnection = false
  private attached = false
  private cutByUs = false
  private finished = false
  private fiber: Fiber.Fiber<unknown, unknown> | undefined
  private interrupted = false
  /** As uWS writes it, in memory of its own. */
  private addressText: ArrayBuffer | undefined
  private address: Option.Option<string> | undefined

  constructor(listener: ListenerState, res: HttpResponse, req: HttpRequest, context?: UpgradeContext) {
    this.listener = listener
    this.res = res
    this.upgradeContext = context
    this.method = req.getCaseSensitiveMethod()
    const query: string | undefined = req.getQuery()
    this.url = query ? `${req.getUrl()}?${query}` : req.getUrl()
    const headers: Record<string, string> = {}
    let bytes = this.method.length + this.url.length
    req.forEach((name, value) => {
      bytes += name.length + value.length
      const before = headers[name]
      // By type, because `constructor` is a legal header name and every object has one.
      headers[name] =
        typeof before === "string" ? `${before}${name === "cookie" ? "; " : ", "}${value}` : value
    })
    this.headers = headers
    this.headBytes = bytes
    this.notes = new RequestContext(headers["x-request-id"], listener.newId)
    this.notes.traceparent = headers.traceparent
  }

  /** Must be called before the first uWS callback returns, unless the response has ended by then. */
  attach(): void {
    if (this.attached) return
    this.attached = true
    this.addressText ??= this.res.getRemoteAddressAsText()
    this.res.onAborted(() => this.aborted())
  }

  /** The peer's address; after the end only if it was asked for before. */
  remoteAddress(): Option.Option<string> {
    // Read while the request lives, and made a text only where somebody asks.
    if (this.addressText === undefined && !this.done) this.addressText = this.res.getRemoteAddressAsText()
    this.address ??=
      this.addressText === undefined ? Option.none() : Option.some(plainAddress(this.addressText))
    return this.address
  }

  /** The same, empty where it is not known any more. */
  peerAddress(): string {
    return Option.getOrElse(this.remoteAddress(), () => "")
  }

  /** Whether a header of the PROXY protocol came before the request. */
  namesProxiedPeer(): boolean {
    return this.res.getProxiedRemoteAddress().byteLength > 0
  }

  /** One syscall for everything that `write` hands to `res`. */
  corked(write: () => void): void {
    if (this.inCallback) write()
    else this.res.cork(write)
  }

  /** The response is complete, or about to be in the same breath: nobody touches `res` again. */
  finish(): void {
    const first = !this.finished
    // Cannot be asked for later.
    if (first && this.listener.anonymous !== undefined && !this.notes.identified) this.remoteAddress()
    this.finished = true
    this.done = true
    this.body?.release()
    this.reply?.release()
    if (!first) return
    this.listener.observer?.ended(this)
    this.listener.anonymous?.ended(this)
  }

  /** Closes the connection without ending the response, so that a cut body never looks complete. */
  close(): void {
    if (this.done) return
    this.attach()
    this.finish()
    if (!this.inCallback) {
      this.res.close()
      return
    }
    // What was written in this callback is still in uWS's cork and has to leave first.
    const closing = setImmediate(() => this.res.close())
    this.linger = { release: () => clearImmediate(closing) }
  }

  /** Closes the connection of a peer that is too slow, and interrupts the handler as if the peer had left. */
  cut(): void {
    if (this.done) return
    this.attach()
    this.cutByUs = true
    this.res.close()
  }

  /** uWS's own timer starts anew: our deadlines decide. */
  renewTimer(): void {
    if (this.done) return
    const paused = this.body?.paused === true
    if (!paused) this.res.pause()
    this.res.resume()
    if (paused) this.res.pause()
  }

  /** The fiber that answers, once it has been started and did not end at once. */
  runs(fiber: Fiber.Fiber<unknown, unknown>): void {
    this.fiber = fiber
    // Cut within its first steps, before anyone knew the fiber.
    if (this.interrupted) this.interrupt()
  }

  interrupt(): void {
    this.interrupted = true
    this.fiber?.interruptUnsafe(undefined, ClientAbort.annotation)
  }

  private aborted(): void {
    this.linger?.release()
    if (this.done) return
    if (!this.cutByUs) this.listener.counters.aborts++
    this.done = true
    // Before the release: it wakes whoever reads or writes, and an interrupted fiber no longer needs waking.
    this.interrupt()
    this.finish()
  }
}

const MAPPED_IPV4 = "0000:0000:0000:0000:0000:ffff:"

/** uWS writes IPv4 peers of an IPv6 listener as a mapped address in full; the rest of the program wants `1.2.3.4`. */
const plainAddress = (written: ArrayBuffer): string => {
  const address = text.decode(written)
  if (!address.startsWith(MAPPED_IPV4)) return address
  const hex = address.slice(MAPPED_IPV4.length).replace(":", "")
  return [0, 2, 4, 6].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".")
}

/** The peer of a connection that is open. */
export const addressOf = (res: HttpResponse): string => plainAddress(res.getRemoteAddressAsText())
