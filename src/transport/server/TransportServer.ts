// An Effect HttpServer over uWebSockets.js or Node's own server: listens, dispatches each request to the application, and stops gracefully. HttpRouter, HttpApi, multipart and sockets run over it unchanged.
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Scope } from "effect"
import { HttpEffect, HttpServer } from "effect/http"
import { ServeError } from "effect/http/HttpServerError"
import * as NetAddress from "effect/net/NetAddress"
import { type IsTrusted, trustNone } from "#domain/access/ClientAddress.ts"
import { MemoryBudget } from "#domain/queues/MemoryBudget.ts"
import { RequestBlocks } from "#http/BodyBlocks.ts"
import { NewId } from "#http/Ids.ts"
import type { RequestObserver } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { AnonymousBudget } from "../AnonymousBudget.ts"
import { ConnectionGate } from "../ConnectionGate.ts"
import { Deadlines } from "../Deadlines.ts"
import { Dispatcher, type Handled } from "../exchange/Dispatcher.ts"
import type { ListenerState } from "../exchange/ListenerState.ts"
import { sharedHeaders } from "../exchange/ReplyHead.ts"
import { handleResponse } from "../exchange/ReplyWriter.ts"
import { FairSendQueue } from "../FairSendQueue.ts"
import type { ListenAddress } from "../ListenAddress.ts"
import { LoopTicks } from "../LoopTicks.ts"
import { listenNode } from "../node/NodeListening.ts"
import { TransportCounters, type TransportCounts } from "../TransportCounters.ts"
import { defaultSettings, sweepIntervalMs, type TransportSettings } from "../TransportSettings.ts"
import { listenUws } from "../uws/UwsListening.ts"
import { chosenTransport, type Transport, type TransportChoice } from "./TransportChoice.ts"

export interface ListenOptions extends Omit<ListenAddress, "port"> {
  /** 0: the system chooses. A function gives ports, of which the first is used on which nothing listens. */
  readonly port: number | (() => number)
  /**
   * Sent with every response of this listener, including WebSocket handshakes, unless the response sets them itself.
   */
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly settings?: Partial<TransportSettings>
  /** Which HTTP library serves; see TransportChoice. Absent: `auto`. */
  readonly transport?: TransportChoice
  /** Requests a second without a valid credential from one address. Absent or 0: no limit. */
  readonly anonymousPerSecond?: number
  /** Proxies whose X-Forwarded-For is trusted. Absent: none. */
  readonly isTrusted?: IsTrusted
  /** Called on the event loop for every response that has ended. */
  readonly observer?: RequestObserver
}

/** Ports that are tried, where the caller gives more than one. A guess. */
const mostPorts = 50

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
    /** The HTTP library that serves, and why. */
    readonly transport: Transport
    /** True if clients reach it over TLS. */
    readonly secure: boolean
    /** Reads the certificate files again (see Listening). */
    readonly renewCertificate: Effect.Effect<void, ServeError>
    /** Number of former certificates that still have open connections. */
    readonly retiredCertificates: () => number
  }
>()("edgewise/transport/Listener") {}

/** Listens in the current scope. Closing the scope closes every connection. */
export const make = Effect.fnUntraced(function* (options: ListenOptions) {
  const settings = { ...defaultSettings, ...options.settings }
  const { anonymousPerSecond: perSecond = 0, isTrusted = trustNone } = options
  const responseHeaders = Object.entries(options.responseHeaders ?? {}).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  )
  const state: ListenerState = {
    settings,
    counters: new TransportCounters(
      new MemoryBudget({ node: settings.unreadBytes, user: settings.inboundBytes }),
    ),
    deadlines: new Deadlines(sweepIntervalMs(settings)),
    blocks: yield* RequestBlocks,
    sendQueue: new FairSendQueue(),
    ticks: new LoopTicks(),
    responseHeaders: sharedHeaders(responseHeaders),
    newId: yield* NewId,
    observer: options.observer,
    anonymous: perSecond === 0 ? undefined : new AnonymousBudget({ perSecond, isTrusted }),
    closing: false,
  }
  options.observer?.listening(state.counters)
  const transport = yield* chosenTransport({
    host: options.host,
    tls: options.tls,
    transport: options.transport ?? "auto",
    isTrusted,
  })
  const dispatcher = new Dispatcher(state)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const gate = new ConnectionGate(
    {
      maxConnections: settings.maxConnections,
      isTrusted,
      proxiesOnly: transport.proxiesOnly,
      onUnlisted: (address) => void runFork(warnOfUnlisted(address)),
    },
    state.counters,
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => state.deadlines.stop()))
  const listenOn = (port: number) =>
    (transport.name === "node" ? listenNode : listenUws)({ ...options, port }, dispatcher, gate)
  const { port } = options
  const listening = yield* Effect.acquireRelease(
    typeof port === "number"
      ? listenOn(port)
      : Effect.retry(
          Effect.suspend(() => listenOn(port())),
          { times: mostPorts - 1 },
        ),
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
      transport,
      secure: options.tls !== undefined,
      renewCertificate: listening.renew,
      retiredCertificates: listening.retired,
    }),
  }
})

/** Once for a listener; `/metrics` counts all. */
const warnOfUnlisted = (address: string): Effect.Effect<void> =>
  Effect.logWarning(
    "a connection was closed unread: EDGEWISE_TRUSTED_PROXIES does not name its address, and no others may connect; EDGEWISE_TRANSPORT=node admits them",
  ).pipe(Effect.annotateLogs({ address }))

/** Logs the cause of a failure that becomes a 500. */
const noted = <A, E, R>(application: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.tapCause(application, (cause) =>
    Effect.map(CurrentRequest, (notes) => {
      notes.failure = cause
    }),
  )

/** The server without the services below. */
const layerServer = (options: ListenOptions): Layer.Layer<HttpServer.HttpServer | Listener, ServeError> =>
  Layer.effectContext(
    Effect.map(make(options), ({ server, listener }) =>
      Context.make(HttpServer.HttpServer, server).pipe(Context.add(Listener, listener)),
    ),
  )

/** The server and the services that HttpRouter and HttpApi need: file system, path, etag, HttpPlatform. */
export const layer = (options: ListenOptions) =>
  Layer.mergeAll(layerServer(options), NodeHttpServer.layerHttpServices)
