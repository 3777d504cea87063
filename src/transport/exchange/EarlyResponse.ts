// Answers a request whose body will not be read to its end (408, 413, 431): the response is sent at once, the
// connection is read no further, and it is closed a little later, when the response has had time to arrive.
import { nowMs, type Watched } from "../Deadlines.ts"
import type { Flaw } from "../Framing.ts"
import { detailBody, jsonContentType } from "../Status.ts"
import type { Ending, Exchange } from "./Exchange.ts"
import { writeListenerHeaders, writeRequestHeaders } from "./ReplyHead.ts"

/** Refuses with the product's error body. */
export const refuse = (
  exchange: Exchange,
  status: number,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): void =>
  answerAndClose(
    exchange,
    status,
    [["content-type", jsonContentType], ...Object.entries(headers)],
    detailBody(detail),
  )

/**
 * Refuses a request inside uWS's callback for a piece of its body, and closes the connection at the end of that
 * callback, whether the response arrives or not. Until then each further piece of this read costs less than 1 µs.
 */
export const refuseAtOnce = (exchange: Exchange, status: number, detail: string): void => {
  if (exchange.done) return
  exchange.attach()
  exchange.corked(() => {
    writeRefusal(exchange, status, [["content-type", jsonContentType]])
    exchange.finish()
    exchange.res.end(detailBody(detail), true)
  })
}

/** Ends a lingering connection (see below) inside uWS's callback for a piece of a body. */
export const endLinger = (exchange: Exchange): void => {
  if (exchange.linger === undefined) return
  exchange.linger.release()
  exchange.linger = undefined
  // Anything that this writes follows a complete response with `connection: close`. `close` would free memory that
  // uWS's loop over the chunks of this read still uses.
  exchange.res.end("", true)
}

const writeRefusal = (
  exchange: Exchange,
  status: number,
  headers: Iterable<readonly [string, string]>,
): void => {
  exchange.res.writeStatus(status)
  writeListenerHeaders(exchange, {})
  writeRequestHeaders(exchange, status)
  for (const [name, value] of headers) exchange.res.writeHeader(name, value)
}

/**
 * Refuses a request whose end is uncertain. The response waits until uWS's callback is over: uWS takes the following
 * bytes of the read for the next request, and closes the connection if that comes before a response.
 */
export const refuseUnread = (exchange: Exchange, flaw: Flaw): void => {
  exchange.attach()
  setImmediate(() => refuse(exchange, flaw.status, flaw.detail, flaw.headers))
}

/** `headers` are all headers except the listener's own, content-length and connection. */
export const answerAndClose = (
  exchange: Exchange,
  status: number,
  headers: Iterable<readonly [string, string]>,
  body: string,
): void => {
  if (exchange.done) return
  const { res } = exchange
  exchange.attach()
  const unread = exchange.body !== undefined && !exchange.body.ended
  if (unread) exchange.body?.stop()
  exchange.corked(() => {
    writeRefusal(exchange, status, headers)
    if (!unread) {
      exchange.finish()
      res.end(body, true)
      return
    }
    res.writeHeader("connection", "close")
    res.endUnread(body, exchange.method !== "HEAD")
    exchange.finish()
    exchange.linger = new Linger(exchange)
  })
}

/** Keeps `res` after the exchange is done, and closes the connection when its time is over. */
class Linger implements Watched, Ending {
  listedAt = -1
  readonly #exchange: Exchange
  readonly #untilMs: number

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    this.#untilMs = nowMs() + exchange.listener.settings.lingerMs
    exchange.listener.deadlines.watch(this)
  }

  sweep(now: number): void {
    if (now >= this.#untilMs) this.#exchange.res.close()
  }

  release(): void {
    this.#exchange.listener.deadlines.unwatch(this)
  }
}
