// Answers a request whose body will not be read to its end: the answer goes out whole and at once, the connection is
// not read any more, and it is closed a little later, once the answer has had time to arrive. Used for 408, 413 and
// 431, by RequestBody, ReplyWriter and UwsServer.
import { nowMs, type Watched } from "../Deadlines.ts"
import type { Flaw } from "../Framing.ts"
import { detailBody, jsonContentType, statusLine } from "../Status.ts"
import type { Ending, Exchange } from "./Exchange.ts"
import { writeNotes, writeOwn } from "./ReplyHead.ts"

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
 * Refuses a request inside uWS's callback for a piece of its body, and closes the connection when that callback is over,
 * whether the answer arrives or not: every further piece of this read costs less than 1 µs then, and none follows.
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

/** Ends the connection of an answer that lingers (see below), inside uWS's callback for a piece of a body. */
export const endLinger = (exchange: Exchange): void => {
  if (exchange.linger === undefined) return
  exchange.linger.release()
  exchange.linger = undefined
  // What it writes stands behind a complete answer and a `connection: close`. `close` here would free what uWS's loop
  // over the chunks of this read goes on using.
  exchange.res.end("", true)
}

const writeRefusal = (
  exchange: Exchange,
  status: number,
  headers: Iterable<readonly [string, string]>,
): void => {
  exchange.res.writeStatus(statusLine(status))
  writeOwn(exchange, {})
  writeNotes(exchange, status)
  for (const [name, value] of headers) exchange.res.writeHeader(name, value)
}

/**
 * Refuses a request whose end is not certain. The answer waits until uWS's callback is over: uWS takes what follows in
 * the same read for the next request, and closes the connection when that comes before an answer.
 */
export const refuseUnread = (exchange: Exchange, flaw: Flaw): void => {
  exchange.attach()
  setImmediate(() => refuse(exchange, flaw.status, flaw.detail, flaw.headers))
}

/** `headers` are complete, but for those of the listener, content-length and connection. */
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
    // The body travels inside the last header. uWS's own end would either go on reading what the client sends, or
    // close at once, and a close with unread bytes resets the connection and can take the answer with it.
    res.writeHeader(
      "content-length",
      `${Buffer.byteLength(body)}\r\n\r\n${exchange.method === "HEAD" ? "" : body}`,
    )
    exchange.finish()
    exchange.linger = new Linger(exchange)
  })
}

/** The one holder of `res` after the exchange is done: closes the connection when its time has come. */
class Linger implements Watched, Ending {
  listedAt = -1
  private readonly exchange: Exchange
  private readonly untilMs: number

  constructor(exchange: Exchange) {
    this.exchange = exchange
    this.untilMs = nowMs() + exchange.listener.settings.lingerMs
    exchange.listener.deadlines.watch(this)
  }

  sweep(now: number): void {
    if (now >= this.untilMs) this.exchange.res.close()
  }

  release(): void {
    this.exchange.listener.deadlines.unwatch(this)
  }
}
