// Effect's HttpServerRequest over one exchange. Handlers and Effect's modules (router, HttpApi, multipart) use this,
// not uWS. `modify` makes another view of the same exchange; the state is in the exchange and its RequestBody.
import { Cause, Effect, Inspectable, type Option, type Schema, Stream } from "effect"
import { Cookies, Headers, HttpIncomingMessage, HttpServerRequest, Multipart, UrlParams } from "effect/http"
import { HttpServerError, RequestParseError } from "effect/http/HttpServerError"
import type * as Socket from "effect/socket/Socket"
import { joined, joinedAtOnce } from "#http/JoinedBytes.ts"
import { CurrentSocketOwner, SocketMessageSize } from "#http/SocketFrames.ts"
import { BoundaryBudget, boundaryOf } from "../BoundaryBudget.ts"
import { areSendable } from "../Status.ts"
import type { Exchange } from "./Exchange.ts"
import { upgradeExchange } from "./Handshake.ts"
import type { BodyFailure, RequestBody } from "./RequestBody.ts"

interface View {
  readonly url?: string
  readonly headers?: Headers.Headers
  readonly remoteAddress?: Option.Option<string>
  readonly peerAddress?: Option.Option<string>
  readonly protocol?: "http" | "https"
}

const text = new TextDecoder()
/** Form data keeps a leading byte order mark. */
const formText = new TextDecoder("utf-8", { ignoreBOM: true })

export class ServerRequest extends Inspectable.Class implements HttpServerRequest.HttpServerRequest {
  readonly [HttpServerRequest.TypeId]: typeof HttpServerRequest.TypeId = HttpServerRequest.TypeId
  readonly [HttpIncomingMessage.TypeId]: typeof HttpIncomingMessage.TypeId = HttpIncomingMessage.TypeId
  readonly exchange: Exchange
  readonly #view: View
  #headersCache: Headers.Headers | undefined
  #cookiesCache: Readonly<Record<string, string>> | undefined

  constructor(exchange: Exchange, view: View = {}) {
    super()
    this.exchange = exchange
    this.#view = view
  }

  get source(): object {
    return this.exchange
  }
  get method(): string {
    return this.exchange.method
  }
  get url(): string {
    return this.#view.url ?? this.exchange.url
  }
  get originalUrl(): string {
    const { host } = this.exchange.headers
    return host === undefined ? this.exchange.url : `http://${host}${this.exchange.url}`
  }
  get protocol(): "http" | "https" | undefined {
    return this.#view.protocol
  }
  get headers(): Headers.Headers {
    this.#headersCache ??= this.#view.headers ?? Headers.fromRecordUnsafe(this.exchange.headers)
    return this.#headersCache
  }
  get cookies(): Readonly<Record<string, string>> {
    this.#cookiesCache ??= Cookies.parseHeader(this.headers.cookie ?? "")
    return this.#cookiesCache
  }
  get remoteAddress(): Option.Option<string> {
    return this.#view.remoteAddress ?? this.exchange.remoteAddress()
  }
  get peerAddress(): Option.Option<string> {
    return this.#view.peerAddress ?? this.remoteAddress
  }
  modify(changes: View): ServerRequest {
    return new ServerRequest(this.exchange, { ...this.#view, ...changes })
  }

  // ---------------------------------------------------------------- body

  get stream(): Stream.Stream<Uint8Array, HttpServerError> {
    return Stream.fromPull(
      Effect.withFiber((fiber) => {
        const { body } = this.exchange
        if (body === undefined) return Effect.succeed(Cause.done())
        body.limit(this.#limitBytes(fiber.getRef(HttpIncomingMessage.MaxBodySize)))
        return Effect.succeed(body.pull((failure) => this.#bodyError(failure)))
      }),
    )
  }

  get arrayBuffer(): Effect.Effect<ArrayBuffer, HttpServerError> {
    return Effect.map(this.#bytes, (bytes) =>
      bytes.byteLength === bytes.buffer.byteLength
        ? (bytes.buffer as ArrayBuffer)
        : (bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer),
    )
  }

  get text(): Effect.Effect<string, HttpServerError> {
    return Effect.map(this.#bytes, (bytes) => text.decode(bytes))
  }

  get json(): Effect.Effect<Schema.Json, HttpServerError> {
    return Effect.flatMap(this.text, (json) =>
      Effect.try({
        try: (): Schema.Json => (json === "" ? null : JSON.parse(json)),
        catch: (cause) => this.#parseError("the body is not JSON", cause),
      }),
    )
  }

  get urlParamsBody(): Effect.Effect<UrlParams.UrlParams, HttpServerError> {
    // A leading "?" is form data; URLSearchParams would drop it.
    return Effect.map(this.#bytes, (bytes) =>
      UrlParams.fromInput(new URLSearchParams(formText.decode(bytes).replace(/^\?/, "%3F"))),
    )
  }

  get multipartStream(): Stream.Stream<Multipart.Part, Multipart.MultipartError> {
    const pieces = Stream.mapError(this.stream, (cause) =>
      Multipart.MultipartError.fromReason(multipartReason(cause), cause),
    )
    const boundary = boundaryOf(this.headers["content-type"] ?? "")
    if (boundary === undefined) {
      return Stream.fail(Multipart.MultipartError.fromReason("Parse", "no boundary, or several"))
    }
    const counted = Stream.unwrap(
      Effect.map(Multipart.MaxParts, (maxParts = defaultMaxParts) => {
        // One more for the boundary after the last part, and one more for a difference between this count and the
        // parser's.
        const budget = new BoundaryBudget(boundary, maxParts + 2)
        return Stream.mapArrayEffect(pieces, (some) =>
          some.every((piece) => budget.take(piece)) ? Effect.succeed(some) : tooManyParts,
        )
      }),
    )
    // Effect's parser throws if a boundary ends a part's head before the empty line.
    return Stream.catchDefect(
      Stream.pipeThroughChannel(counted, Multipart.makeChannel(this.headers)),
      (defect) => Stream.fail(Multipart.MultipartError.fromReason("Parse", defect)),
    )
  }

  get multipart(): HttpServerRequest.HttpServerRequest["multipart"] {
    return Effect.suspend(() => {
      this.exchange.multipart ??= Effect.runSync(Effect.cached(Multipart.toPersisted(this.multipartStream)))
      return this.exchange.multipart
    })
  }

  /** The whole body, cached: it may be read again, also through another view. */
  get #bytes(): Effect.Effect<Uint8Array, HttpServerError> {
    return Effect.withFiber((fiber) => {
      const { body } = this.exchange
      if (body === undefined) return Effect.succeed(noBytes)
      if (body.whole !== undefined) return body.whole
      body.limit(this.#limitBytes(fiber.getRef(HttpIncomingMessage.MaxBodySize)))
      const arrived = body.takeWhole()
      body.whole =
        arrived === undefined
          ? Effect.runSync(Effect.cached(this.#collect(body)))
          : (Effect.succeed(arrived) as Effect.Effect<Uint8Array, HttpServerError>)
      return body.whole
    })
  }

  #collect(body: RequestBody): Effect.Effect<Uint8Array, HttpServerError> {
    return Stream.runFold(
      this.stream,
      (): Array<Uint8Array> => [],
      (chunks, chunk) => {
        chunks.push(chunk)
        return chunks
      },
    ).pipe(
      Effect.flatMap((chunks) =>
        body.receivedBytes <= joinedAtOnce
          ? Effect.sync(() => body.join(chunks))
          : Effect.tap(joined(chunks), () => Effect.sync(() => body.giveBack(chunks))),
      ),
    )
  }

  #limitBytes(limit: bigint | undefined): number {
    return limit === undefined ? this.exchange.listener.settings.bodyBytes : Number(limit)
  }

  #bodyError(failure: BodyFailure): HttpServerError {
    if (failure !== "TooLarge") return this.#parseError(`the body ended early: ${failure}`)
    const limit = this.exchange.body?.limitedToBytes
    return this.#parseError(`the body is larger than ${limit} bytes`, undefined, "BodyTooLarge")
  }

  #parseError(description: string, cause?: unknown, reason: "Parse" | "BodyTooLarge" = "Parse") {
    return new HttpServerError({
      reason: new RequestParseError({ request: this, reason, description, cause }),
    })
  }

  // ---------------------------------------------------------------- upgrade

  get upgrade(): Effect.Effect<Socket.Socket, HttpServerError> {
    return this.upgradeWith({})
  }

  /** `sec-websocket-protocol` in `headers` chooses the subprotocol; without it the first one offered is used. */
  upgradeWith(options: {
    readonly headers?: Headers.Input | undefined
  }): Effect.Effect<Socket.Socket, HttpServerError> {
    return Effect.withFiber((fiber) => {
      const headers = Headers.fromInput(options.headers)
      if (!areSendable(headers)) return Effect.die(new Error("an upgrade header cannot be sent"))
      const terms = { size: fiber.getRef(SocketMessageSize), owner: fiber.getRef(CurrentSocketOwner) }
      const socket = upgradeExchange(this.exchange, headers, terms)
      return socket === undefined
        ? Effect.fail(this.#parseError("not a WebSocket request"))
        : Effect.succeed(socket)
    })
  }

  override toString(): string {
    return `ServerRequest(${this.method} ${UrlParams.redactUrl(this.url)})`
  }
  toJSON(): unknown {
    return HttpIncomingMessage.inspect(this, {
      _id: "HttpServerRequest",
      method: this.method,
      url: UrlParams.redactUrl(this.originalUrl),
    })
  }
}

/** Parts of a multipart body if the handler sets no limit. A guess: more fields than any form has. */
const defaultMaxParts = 1_000
const tooManyParts = Effect.fail(Multipart.MultipartError.fromReason("TooManyParts"))

const noBytes = new Uint8Array(0)

const multipartReason = (error: HttpServerError): "BodyTooLarge" | "Parse" =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"
    ? "BodyTooLarge"
    : "Parse"

/** The exchange of a request of this listener, through any number of `modify`. */
export const exchangeOf = (request: HttpServerRequest.HttpServerRequest): Exchange =>
  (request as ServerRequest).exchange
