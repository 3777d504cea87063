// An Effect HttpServer over uWebSockets.js: listens, makes an exchange of each request, runs the application's fiber
// for it, and stops gracefully. HttpRouter, HttpApi, multipart and sockets run over it unchanged.
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Fiber, Layer, Scope } from "effect"
import { HttpEffect, HttpServer, HttpServerRequest } from "effect/http"
import { ServeError } from "effect/http/HttpServerError"
import * as NetAddress from "effect/net/NetAddress"
import type { IsTrusted } from "#domain/access/ClientAddress.ts"
import { type Listed, UnorderedSet } from "#domain/queues/UnorderedSet.ts"
import { RequestBlocks } from "#http/BodyBlocks.ts"
import { NewId } from "#http/Ids.ts"
import type { RequestObserver } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { AnonymousBudget } from "../AnonymousBudget.ts"
import { ConnectionGate } from "../ConnectionGate.ts"
import { Deadlines } from "../Deadlines.ts"
import { FairSendQueue } from "../FairSendQueue.ts"
import { framingFlaw, proxyHeaderFlaw } from "../Framing.ts"
import { LoopTicks } from "../LoopTicks.ts"
import { RequestQueue } from "../RequestQueue.ts"
import { TransportCounters, type TransportCounts } from "../TransportCounters.ts"
import { defaultSettings, sweepIntervalMs, type TransportSettings } from "../TransportSettings.ts"
import { refuse, refuseUnread } from "./EarlyResponse.ts"
import { addressOf, Exchange, type ListenerState, type UpgradeContext } from "./Exchange.ts"
import { webSocketEvents } from "./Handshake.ts"
import { type ListenAddress, listen } from "./Listening.ts"
import { joinHeaders } from "./ReplyHead.ts"
import { handleResponse } from "./ReplyWriter.ts"
import { RequestBody } from "./RequestBody.ts"
import { type HttpRequest, type HttpResponse, loadUws, type TemplatedApp } from "./Uws.ts"
import { UwsRequest } from "./UwsRequest.ts"

export interface ListenOptions extends ListenAddress {
  /**
   * Sent with every response of this listener, including WebSocket handshakes, unless the response sets them itself.
   */
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly settings?: Partial<TransportSettings>
  /** Requests a second without a valid credential from one address. Absent or 0: no limit. */
  readonly anonymousPerSecond?: number
  /** Proxies whose X-Forwarded-For is trusted. Absent: none. */
  readonly isTrusted?: IsTrusted
  /** Called on the event loop for every response that has ended. */
  readonly observer?: RequestObserver
}

/** A listener's counters, and how it is stopped. */
export class Listener extends Context.Service<
  Listener,
  {
    readonly counts: TransportCounts
    /**
     * Every response from now on closes its connection. With `accept: false` new connections are refused too; with
     * `true` they are still served, so that the application can answer them with 503.
     */
    readonly windDown: (options: { readonly accept: boolean }) => Effect.Effect<void>
    /** Completes when no request is in flight; at once if there is none. */
    readonly idle: Effect.Effect<void>
    /**
     * `windDown` without accepting, then `idle`. Interrupting it ends the wait; closing the scope ends the remaining
     * requests.
     */
    readonly drain: Effect.Effect<void>
    /** True if clients reach it over TLS. */
    readonly secure: boolean
    /** Reads the certificate files again (see Listening). */
    readonly renewCertificate: Effect.Effect<void, ServeError>
    /** Number of former certificates that still have open connections. */
    readonly retiredCertificates: () => number
  }
>()("edgewise/transport/Listener") {}

type Handled = Effect.Effect<void, never, HttpServerRequest.HttpServerRequest>

/** Listens in the current scope. Closing the scope closes every connection. */
export const make = Effect.fnUntraced(function* (options: ListenOptions) {
  const settings = { ...defaultSettings, ...options.settings }
  const { anonymousPerSecond: perSecond = 0, isTrusted = () => false } = options
  const responseHeaders = Object.entries(options.responseHeaders ?? {}).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  )
  const state: ListenerState = {
    settings,
    counters: new TransportCounters(),
    deadlines: new Deadlines(sweepIntervalMs(settings)),
    blocks: yield* RequestBlocks,
    sendQueue: new FairSendQueue(),
    ticks: new LoopTicks(),
    responseHeaders,
    joinedHeaders: joinHeaders(responseHeaders),
    newId: yield* NewId,
    observer: options.observer,
    anonymous: perSecond === 0 ? undefined : new AnonymousBudget({ perSecond, isTrusted }),
    closing: false,
  }
  options.observer?.listening(state.counters)
  const dispatcher = new Dispatcher(state)
  const gate = new ConnectionGate(settings.maxConnections, isTrusted)
  const uws = yield* Effect.promise(loadUws)
  yield* Effect.addFinalizer(() => Effect.sync(() => state.deadlines.stop()))
  const listening = yield* Effect.acquireRelease(
    listen(uws, options, routes(dispatcher, gate)),
    ({ close }) => Effect.sync(close),
  )
  const address = yield* Effect.fromResult(
    NetAddress.inetAddressFromIpString(options.host, listening.port),
  ).pipe(Effect.mapError((cause) => new ServeError({ cause })))
  const windDown = (how: { readonly accept: boolean }): Effect.Effect<void> =>
    Effect.sync(() => {
      state.closing = true
      if (!how.accept) listening.stop()
    })
  return {
    server: HttpServer.make({
      address,
      serve: Effect.fnUntraced(function* (application, middleware) {
        const serveScope = yield* Effect.scope
        const services = yield* Effect.context<never>()
        dispatcher.serve(
          HttpEffect.toHandled(noted(application), handleResponse, middleware) as Handled,
          services,
        )
        yield* Scope.addFinalizer(serveScope, dispatcher.interruptAll)
        // Runs before the requests are interrupted: they are answered 503 on a connection that closes.
        yield* Scope.addFinalizer(serveScope, windDown({ accept: false }))
      }),
    }),
    listener: Listener.of({
      counts: state.counters,
      windDown,
      idle: dispatcher.idle,
      drain: Effect.andThen(windDown({ accept: false }), dispatcher.idle),
      secure: options.tls !== undefined,
      renewCertificate: listening.renew,
      retiredCertificates: listening.retired,
    }),
  }
})

/** Logs the cause of a failure that becomes a 500. */
const noted = <A, E, R>(application: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.tapCause(application, (cause) =>
    Effect.map(CurrentRequest, (notes) => {
      notes.failure = cause
    }),
  )

/** The server without the services below. */
export const layerServer = (
  options: ListenOptions,
): Layer.Layer<HttpServer.HttpServer | Listener, ServeError> =>
  Layer.effectContext(
    Effect.map(make(options), ({ server, listener }) =>
      Context.make(HttpServer.HttpServer, server).pipe(Context.add(Listener, listener)),
    ),
  )

/** The server and the services that HttpRouter and HttpApi need: file system, path, etag, HttpPlatform. */
export const layer = (options: ListenOptions) =>
  Layer.mergeAll(layerServer(options), NodeHttpServer.layerHttpServices)

// ---------------------------------------------------------------- requests

/**
 * Services that a request may add to the node's. With more than this, Effect copies the map of all services for the
 * request. Its router, the api and this file add nine.
 */
const servicesOfARequest = 16

interface RunningRequest extends Listed {
  readonly fiber: Fiber.Fiber<void>
}

/** Starts a fiber for each request and tracks the running ones. */
class Dispatcher {
  readonly state: ListenerState
  private handled: Handled | undefined
  private services: Context.Context<never> = Context.empty()
  private readonly running = new UnorderedSet<RunningRequest>()
  private stopped = false
  private readonly idleWaiters = new Set<() => void>()
  private readonly queue: RequestQueue<Exchange>

  constructor(state: ListenerState) {
    this.state = state
    this.queue = new RequestQueue(state.ticks, (exchange) => this.run(exchange))
  }

  serve(handled: Handled, services: Context.Context<never>): void {
    this.handled = handled
    this.services = Context.makeUnsafe(services.mapUnsafe, { maxDepth: servicesOfARequest })
  }

  /** Interrupts the running requests, and every further one. */
  readonly interruptAll: Effect.Effect<void> = Effect.suspend(() => {
    this.stopped = true
    return Fiber.interruptAll(this.running.values().map(({ fiber }) => fiber))
  })

  readonly idle: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.state.counters.inFlight === 0) return resume(Effect.void)
    const wake = (): void => {
      this.idleWaiters.delete(wake)
      resume(Effect.void)
    }
    this.idleWaiters.add(wake)
    return Effect.sync(() => this.idleWaiters.delete(wake))
  })

  readonly onRequest = (res: HttpResponse, req: HttpRequest, context?: UpgradeContext): void => {
    const exchange = new Exchange(this.state, res, req, context)
    try {
      this.begin(exchange)
    } finally {
      // Required on every path: uWS ends the process if a request is left without a response and without `onAborted`.
      if (!exchange.done) exchange.attach()
      exchange.inCallback = false
    }
  }

  private begin(exchange: Exchange): void {
    const { headBytes, eagerBodyBytes } = this.state.settings
    const flaw = exchange.namesProxiedPeer()
      ? proxyHeaderFlaw
      : framingFlaw(exchange, this.state.settings.chunkedBodies)
    if (flaw !== undefined) {
      this.state.counters.framingRefused++
      return refuseUnread(exchange, flaw)
    }
    const tooMany = this.state.anonymous?.refusal(exchange)
    if (tooMany !== undefined) {
      this.state.counters.anonymousRefused++
      return refuseUnread(exchange, tooMany)
    }
    this.startBody(exchange)
    if (exchange.headBytes > headBytes) {
      this.state.counters.headsTooLarge++
      return refuse(exchange, 431, `headers: larger than ${headBytes} bytes`)
    }
    const lengthBytes = exchange.body?.lengthBytes
    if (lengthBytes === undefined || lengthBytes > eagerBodyBytes) this.queue.admit(exchange)
  }

  /** uWS delivers the body only to a handler set before this callback returns. */
  private startBody(exchange: Exchange): void {
    const { headers } = exchange
    const chunked = headers["transfer-encoding"] !== undefined
    const lengthBytes = chunked ? undefined : Number(headers["content-length"] ?? 0)
    if (lengthBytes === 0) return
    exchange.body = new RequestBody(exchange, lengthBytes)
    // uWS accepts chunk lines that RFC 9112 forbids, so what follows such a body cannot be trusted.
    exchange.closesConnection = chunked
    const eager = lengthBytes !== undefined && lengthBytes <= this.state.settings.eagerBodyBytes
    exchange.body.start(eager ? () => this.queue.admit(exchange) : undefined)
  }

  private run(exchange: Exchange): void {
    if (this.handled === undefined) return refuse(exchange, 503, "Service Unavailable")
    const { counters } = this.state
    counters.requests++
    const request = new UwsRequest(exchange)
    const fiber = Effect.runForkWith(
      Context.add(this.services, HttpServerRequest.HttpServerRequest, request).pipe(
        Context.add(CurrentRequest, exchange.notes),
      ),
    )(this.handled)
    if (fiber.pollUnsafe() !== undefined) return this.finished(exchange)
    counters.inFlight++
    exchange.runs(fiber)
    const running: RunningRequest = { fiber, listedAt: -1 }
    this.running.add(running)
    fiber.addObserver(() => {
      this.running.delete(running)
      counters.inFlight--
      this.finished(exchange)
      if (counters.inFlight === 0) for (const wake of [...this.idleWaiters]) wake()
    })
    if (this.stopped) fiber.interruptUnsafe()
  }

  /** Answers for a fiber that ended without a response; otherwise its client would wait forever. */
  private finished(exchange: Exchange): void {
    if (exchange.headSent) exchange.close()
    else if (!exchange.done) refuse(exchange, 500, "Internal Server Error")
  }
}

// ---------------------------------------------------------------- uWS

const routes =
  (dispatcher: Dispatcher, gate: ConnectionGate) =>
  <App extends TemplatedApp>(app: App): App => {
    const { counters } = dispatcher.state
    app.filter((res, change) => {
      counters.connections += change
      if (change < 0) return
      if (gate.admits(addressOf(res), counters.connections - counters.webSockets)) return
      counters.connectionsRefused++
      res.close()
    })
    app.any("/*", (res, req) => dispatcher.onRequest(res, req))
    app.ws("/*", webSocketEvents(dispatcher.state, dispatcher.onRequest))
    return app
  }
