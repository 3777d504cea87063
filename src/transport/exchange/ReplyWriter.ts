// Writes an Effect response to the channel: the head, then no body, bytes, a stream or a sink body. Runs once per request, in
// an uninterruptible region. The content is unchanged, except that an error without a body gets the product's `detail`.
import { Cause, Effect, Stream } from "effect"
import { Cookies, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { causeResponse } from "effect/http/HttpServerError"
import { sinkBodyOf } from "#http/SinkBody.ts"
import { areSendable, defaultDetail, detailBody, jsonContentType } from "../Status.ts"
import { answerAndClose } from "./EarlyResponse.ts"
import type { Exchange } from "./Exchange.ts"
import { FixedLengthReply } from "./FixedLengthReply.ts"
import { writeListenerHeaders, writeRequestHeaders } from "./ReplyHead.ts"
import { ReplySink } from "./ReplySink.ts"
import { exchangeOf } from "./ServerRequest.ts"

type Response = HttpServerResponse.HttpServerResponse
type Request = HttpServerRequest.HttpServerRequest

/** Bodies up to this size are handed to uWS whole: what the kernel does not accept at once is copied, once. */
const plainBodyBytes = 64 * 1024

/**
 * How long a failed stream stays open. `fetch` discards unread data when a connection closes, and the last event of a
 * stream says why it failed: readers three or four events behind never received it (0 of 8). Short, because a client
 * must see the end within 250 ms of an engine's death.
 */
const failureReadMs = 25

/** The response of a request that became a WebSocket, as middleware sees it. */
const switchingProtocols = HttpServerResponse.empty({ status: 101 })

export const handleResponse = (request: Request, response: Response): Effect.Effect<unknown, unknown> => {
  const exchange = exchangeOf(request)
  if (exchange.upgraded) return Effect.succeed(switchingProtocols)
  if (exchange.done) return Effect.void
  if (!isSendable(response)) {
    return Effect.andThen(
      Effect.sync(() => end(exchange, HttpServerResponse.empty({ status: 500 }), defaultDetail(500))),
      Effect.die(new Error(`response ${response.status} has a header or a status that cannot be sent`)),
    )
  }
  if (cannotKeepReading(exchange, response)) {
    return Effect.sync(() =>
      answerAndClose(exchange, response.status, replyHeaders(exchange, response), textOf(exchange, response)),
    )
  }
  exchange.body?.resume()
  const { body } = response
  if (exchange.method === "HEAD" || HttpServerResponse.omitsBody(response)) {
    endWithoutBody(exchange, response)
    return Effect.void
  }
  switch (body._tag) {
    case "Empty":
      end(exchange, response, response.status >= 400 ? textOf(exchange, response) : undefined)
      return Effect.void
    case "Uint8Array":
      // A large text is encoded once for all requests that this response object answers: the bytes are kept with it.
      return sendBytes(
        exchange,
        response,
        body.contentLength > plainBodyBytes ? body.body : (body.text ?? body.body),
      )
    case "Stream":
      return sendSink(exchange, response, (sink) =>
        Stream.runForEachArray(body.stream, (chunks) => sink.writeAll(chunks)),
      )
    case "Raw": {
      const sinkBody = sinkBodyOf(body.body)
      if (sinkBody !== undefined) return sendSink(exchange, response, sinkBody)
      if (typeof body.body === "string") return sendBytes(exchange, response, body.body)
      if (body.body instanceof Uint8Array) return sendBytes(exchange, response, body.body)
      return unsupported(exchange, "raw")
    }
    default:
      return unsupported(exchange, body._tag)
  }
}

// ---------------------------------------------------------------- bodies

const sendBytes = (
  exchange: Exchange,
  response: Response,
  body: string | Uint8Array,
): Effect.Effect<unknown, unknown> => {
  if (body.length <= plainBodyBytes) {
    end(exchange, response, body)
    return Effect.void
  }
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  return Effect.interruptible(
    Effect.suspend(() =>
      new FixedLengthReply(exchange, bytes).send(() => writeHead(exchange, response, true)),
    ),
  ).pipe(Effect.onInterrupt(() => Effect.sync(() => exchange.close())))
}

const sendSink = (
  exchange: Exchange,
  response: Response,
  body: (sink: ReplySink) => Effect.Effect<void, unknown>,
): Effect.Effect<unknown, unknown> => {
  const sink = new ReplySink(exchange)
  exchange.corked(() => writeHead(exchange, response, true))
  return Effect.interruptible(Effect.andThen(body(sink), sink.drained)).pipe(
    Effect.matchCauseEffect({
      onSuccess: () =>
        Effect.sync(() => {
          if (exchange.done) return
          exchange.corked(() => {
            exchange.finish()
            exchange.res.end()
          })
        }),
      onFailure: (cause) => {
        if (!exchange.done) {
          exchange.listener.counters.brokenReplies++
          if (!Cause.hasInterruptsOnly(cause)) exchange.notes.breaksOff(cause)
        }
        // No delay if the client has left or the handler was interrupted.
        const delay =
          exchange.done || Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.sleep(failureReadMs)
        return Effect.andThen(
          delay,
          Effect.suspend(() => {
            // Never `end`: a cut body must not look complete.
            exchange.close()
            return Effect.flatMap(causeResponse(cause), ([, reported]) =>
              Effect.failCause(Cause.combine(reported, Cause.die(response))),
            )
          }),
        )
      },
    }),
  )
}

const end = (exchange: Exchange, response: Response, body: string | Uint8Array | undefined): void =>
  exchange.corked(() => {
    const close = writeHead(exchange, response, false)
    if (body !== undefined && response.body._tag === "Empty") {
      exchange.res.writeHeader("content-type", jsonContentType)
    }
    exchange.finish()
    exchange.res.end(body, close)
  })

const endWithoutBody = (exchange: Exchange, response: Response): void =>
  exchange.corked(() => {
    writeHead(exchange, response, true)
    // Not as an argument of endWithoutBody: a length leaves the response open, and `undefined` is taken for 2^63.
    const length = response.headers["content-length"]
    if (length !== undefined && response.status !== 204 && response.status !== 205) {
      exchange.res.writeHeader("content-length", length)
    }
    exchange.finish()
    exchange.res.endWithoutBody()
  })

const unsupported = (exchange: Exchange, tag: string): Effect.Effect<never> => {
  end(exchange, HttpServerResponse.empty({ status: 500 }), defaultDetail(500))
  return Effect.die(new Error(`response body of an unsupported kind: ${tag}`))
}

// ---------------------------------------------------------------- head

/** uWS or `writeHead` writes these. */
const ownHeaders = new Set(["content-length", "transfer-encoding", "connection"])

/** Writes status and headers. True if the connection must close after the response. */
const writeHead = (exchange: Exchange, response: Response, sayClose: boolean): boolean => {
  const { res, listener } = exchange
  const { headers } = response
  exchange.headSent = true
  res.writeStatus(response.status)
  for (const name in headers) {
    if (!ownHeaders.has(name)) res.writeHeader(name, headers[name] as string)
  }
  writeListenerHeaders(exchange, headers)
  writeRequestHeaders(exchange, response.status)
  if (!Cookies.isEmpty(response.cookies)) {
    for (const cookie of Cookies.toSetCookieHeaders(response.cookies)) res.writeHeader("set-cookie", cookie)
  }
  const close = listener.closing || exchange.closesConnection || headers.connection?.toLowerCase() === "close"
  // uWS would write it at the end of the body, which is too late for a body in pieces.
  if (close && sayClose) res.writeHeader("connection", "close")
  return close
}

function* replyHeaders(exchange: Exchange, response: Response): Generator<readonly [string, string]> {
  const own = new Set(exchange.listener.responseHeaders.list.map(([name]) => name))
  for (const [name, value] of Object.entries(response.headers)) {
    if (!ownHeaders.has(name) && !own.has(name)) yield [name, value]
  }
  if (response.body._tag === "Empty") yield ["content-type", jsonContentType]
}

const isSendable = (response: Response): boolean =>
  response.status >= 200 && response.status <= 599 && areSendable(response.headers)

// ---------------------------------------------------------------- refusals

/** True if the rest of the request's body is too long to be discarded. */
const cannotKeepReading = (exchange: Exchange, response: Response): boolean => {
  const { body } = exchange
  if (body === undefined || body.ended) return false
  if (body.failure !== undefined) return true
  // A streamed response may still be reading the request.
  if (response.body._tag === "Stream" || response.body._tag === "Raw") return false
  if (body.lengthBytes === undefined) return true
  return body.lengthBytes - body.receivedBytes > exchange.listener.settings.discardBytes
}

/** The body of a short response: its own, or the default body of an error without one. */
const textOf = (exchange: Exchange, response: Response): string => {
  const { body } = response
  if (body._tag === "Uint8Array") return body.text ?? new TextDecoder().decode(body.body)
  if (response.status === 413 && exchange.body?.failure === "TooLarge") {
    return detailBody(`body: larger than ${exchange.body.limitedToBytes} bytes`)
  }
  return response.status >= 400 ? defaultDetail(response.status) : ""
}
