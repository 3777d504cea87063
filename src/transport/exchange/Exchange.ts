// One request and its response. Owns the channel `res`, which must not be used after its end or abort (uWebSockets.js
// crashes the process): `done` is true from that moment, and the other files of this folder check it before they use `res`.
import type { Fiber } from "effect"
import { Option } from "effect"
import { ClientAbort } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import { RequestContext, wantsErrorObject } from "#http/RequestContext.ts"
import type { IncomingHead, ReplyChannel } from "./Channel.ts"
import type { ListenerState } from "./ListenerState.ts"
import type { RequestBody } from "./RequestBody.ts"

/** Work to do when the exchange ends, for any reason. */
export interface Ending {
  readonly release: () => void
}

/**
 * uWS closes a connection that sends its body slower than 16 KB/s, or that took no write, after 10 s in steps of 4 s
 * (measured: 10 to 12 s). Calling `renewTimer` at this interval prevents that.
 */
export const renewAfterMs = 3_000

export class Exchange {
  // The first four fields, which every write reads, are adjacent in memory.
  readonly listener: ListenerState
  readonly res: ReplyChannel
  /** True once the response has ended, was aborted, or became a WebSocket. */
  done = false
  /** True inside the library's callback that created or resumed the request: uWS has corked the socket already. */
  inCallback = true
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Lower-case names; values of repeated headers are joined. */
  readonly headers: Record<string, string>
  readonly headBytes: number
  readonly headerCount: number
  readonly version: string
  /** Facts about the request for the response head (see ReplyHead). */
  readonly notes: RequestContext
  body: RequestBody | undefined
  /** The stored form of a multipart body once requested, shared by all views of the request. */
  multipart: HttpServerRequest["multipart"] | undefined
  reply: Ending | undefined
  /** Set while an answered connection waits to be closed (see EarlyResponse). */
  linger: Ending | undefined
  headSent = false
  /** Set when the head is written (see ReplyHead). */
  status = 0
  upgraded = false
  /** The connection closes after the response, whatever the client requested. */
  closesConnection = false
  /** The request must not run within the callback that brought its head. */
  deferred = false
  #attached = false
  #cutByUs = false
  #finished = false
  #fiber: Fiber.Fiber<unknown, unknown> | undefined
  #interrupted = false
  #address: Option.Option<string> | undefined

  constructor(listener: ListenerState, res: ReplyChannel, head: IncomingHead) {
    this.listener = listener
    this.res = res
    const { headers } = head
    this.method = head.method
    this.url = head.url
    this.headers = headers
    this.headBytes = head.headBytes
    this.headerCount = head.headerCount
    this.version = head.version
    this.notes = new RequestContext(headers["x-request-id"], listener.newId)
    this.notes.traceparent = headers.traceparent
    this.notes.wantsErrorObject = wantsErrorObject(headers)
  }

  /** Must be called before the library's first callback returns, unless the response has ended by then. */
  attach(): void {
    if (this.#attached) return
    this.#attached = true
    this.res.keepAddress()
    this.res.onAborted(() => this.#aborted())
  }

  /** The client's address. After the end only if it was read before. */
  remoteAddress(): Option.Option<string> {
    // Copied while the request lives, and decoded only when needed.
    if (!this.done) this.res.keepAddress()
    this.#address ??= Option.fromUndefinedOr(this.res.address())
    return this.#address
  }

  /** The same, empty if it is no longer known. */
  peerAddress(): string {
    return Option.getOrElse(this.remoteAddress(), () => "")
  }

  /** Sends everything that `write` writes in one system call. */
  corked(write: () => void): void {
    if (this.inCallback) write()
    else this.res.cork(write)
  }

  /** The response is complete, or will be within this call. `res` is not used again. */
  finish(): void {
    const first = !this.#finished
    // The address cannot be read later.
    if (first && this.listener.anonymous !== undefined && !this.notes.identified) this.remoteAddress()
    this.#finished = true
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
    // What was written in this callback is still in uWS's cork buffer and must be sent first.
    const closing = setImmediate(() => this.res.close())
    this.linger = { release: () => clearImmediate(closing) }
  }

  /** Closes the connection of a client that is too slow, and interrupts the handler as if the client had left. */
  cut(): void {
    if (this.done) return
    this.attach()
    this.#cutByUs = true
    this.res.close()
  }

  /** Restarts the library's timer, so that our deadlines decide. */
  renewTimer(): void {
    if (this.done) return
    this.res.renewTimer(this.body?.paused === true)
  }

  /** The fiber that answers, once it has been started and did not end at once. */
  runs(fiber: Fiber.Fiber<unknown, unknown>): void {
    this.#fiber = fiber
    // The connection was closed during the fiber's first steps.
    if (this.#interrupted) this.interrupt()
  }

  interrupt(): void {
    this.#interrupted = true
    this.#fiber?.interruptUnsafe(undefined, ClientAbort.annotation)
  }

  #aborted(): void {
    this.linger?.release()
    if (this.done) return
    if (!this.#cutByUs) this.listener.counters.aborts++
    this.done = true
    // Before `finish`: that wakes readers and writers, and an interrupted fiber no longer needs it.
    this.interrupt()
    this.finish()
  }
}
