// How a listener accepts connections: with a plain uWS app, or over TLS with an app that only accepts and passes every
// connection to the app with the newest certificate.
//
// uWS reads a certificate once, when an SSLApp is made, so a renewed certificate needs a new app. The accepting app
// (uWS's "parent" app, made for worker threads) keeps the listen socket open; its child app is replaced between two
// connections. No connection is refused meanwhile, and the connections of the old child continue.
import { Effect } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import type { ConnectionGate } from "../ConnectionGate.ts"
import type { Dispatcher } from "../exchange/Dispatcher.ts"
import {
  type ListenAddress,
  type Listening,
  refusedFiles,
  retiredCertificates,
  type TlsFiles,
  warnOfRetired,
} from "../ListenAddress.ts"
import { listenProblem } from "../ListenProblem.ts"
import { type SpareCork, spareCork } from "./SpareResponse.ts"
import {
  exclusivePort,
  type Library,
  type ListenSocket,
  loadUws,
  type SecureApp,
  type TemplatedApp,
} from "./Uws.ts"
import { addressOf, headOf, UwsReply } from "./UwsReply.ts"
import { webSocketEvents } from "./UwsSocket.ts"

type Routes = <App extends TemplatedApp>(app: App) => App

/** Listens with uWebSockets.js and passes every request to the dispatcher. */
export const listenUws = Effect.fnUntraced(function* (
  address: ListenAddress,
  dispatcher: Dispatcher,
  gate: ConnectionGate,
) {
  const uws = yield* Effect.promise(loadUws)
  const routes = uwsRoutes(dispatcher, gate, yield* spareCork(uws))
  return yield* address.tls === undefined
    ? listenPlain(uws, address, routes)
    : listenSecure(uws, address, address.tls, routes)
})

const uwsRoutes =
  (dispatcher: Dispatcher, gate: ConnectionGate, spareCork: SpareCork): Routes =>
  (app) => {
    const { counters } = dispatcher.state
    app.filter((res, change) => {
      counters.connections += change
      if (change < 0) return
      if (!gate.admits(addressOf(res))) res.close()
    })
    app.any("/*", (res, req) => void dispatcher.onRequest(new UwsReply(res), headOf(req)))
    app.ws(
      "/*",
      webSocketEvents(
        dispatcher.state,
        (res, req, context) =>
          void dispatcher.onRequest(new UwsReply(res, { context, spareCork }), headOf(req)),
      ),
    )
    return app
  }

const listenPlain = Effect.fnUntraced(function* (uws: Library, address: ListenAddress, routes: Routes) {
  const app = yield* Effect.sync(() => routes(uws.App()))
  const close = (): void => void app.close()
  const socket = yield* open(uws, app, address).pipe(Effect.tapError(() => Effect.sync(close)))
  return { ...socket, close, renew: Effect.void, retired: () => 0 }
})

const listenSecure = Effect.fnUntraced(function* (
  uws: Library,
  address: ListenAddress,
  files: TlsFiles,
  routes: Routes,
) {
  const acceptor = yield* Effect.sync(() => uws.SSLApp({}) as SecureApp)
  const generations = new Generations(uws, acceptor, files, routes)
  const close = (): void => {
    acceptor.close()
    generations.close()
  }
  const socket = yield* generations.renew.pipe(
    Effect.andThen(open(uws, acceptor, address)),
    Effect.tapError(() => Effect.sync(close)),
  )
  return { ...socket, close, renew: generations.renew, retired: () => generations.retired.length }
})

/** The app of one certificate and the number of its connections. */
interface Generation {
  readonly app: SecureApp
  readonly descriptor: number
  connections: number
  /** True if the app was replaced and no connection is on its way to it any more. */
  settled: boolean
}

/**
 * How long a replaced app without connections is kept. A connection accepted just before the replacement reaches it in
 * the next tick of the event loop.
 */
const settleMs = 1_000

/**
 * The apps of one TLS listener. A replaced app is closed when its last connection has ended; uWS itself frees it only
 * at the end of the process (measured: 35 KB each).
 */
class Generations {
  #current: Generation | undefined
  /** Oldest first. */
  readonly retired: Array<Generation> = []
  readonly #uws: Library
  readonly #acceptor: SecureApp
  readonly #files: TlsFiles
  readonly #routes: Routes

  constructor(uws: Library, acceptor: SecureApp, files: TlsFiles, routes: Routes) {
    this.#uws = uws
    this.#acceptor = acceptor
    this.#files = files
    this.#routes = routes
  }

  /** Makes the files' certificate the current one. */
  readonly renew: Effect.Effect<void, ServeError> = Effect.suspend(() => {
    const next = this.#make()
    if (next === undefined) return Effect.fail(refusedFiles(this.#files))
    const old = this.#current
    this.#acceptor.addChildAppDescriptor(next.descriptor)
    this.#current = next
    if (old === undefined) return Effect.void
    this.#acceptor.removeChildAppDescriptor(old.descriptor)
    this.retired.push(old)
    this.#settle(old)
    const [oldest] = this.retired
    if (this.retired.length <= retiredCertificates || oldest === undefined) return Effect.void
    const { connections } = oldest
    this.#end(oldest)
    return warnOfRetired(connections)
  })

  #make(): Generation | undefined {
    const app = this.#construct()
    if (app === undefined) return undefined
    const generation: Generation = { app, descriptor: app.getDescriptor(), connections: 0, settled: false }
    app.filter((_res, change) => {
      generation.connections += change
      // Not from inside uWS's own closing of the connection.
      if (generation.settled) setImmediate(() => this.#release(generation))
    })
    return generation
  }

  /** uWS throws the same error for every problem with the files. */
  #construct(): SecureApp | undefined {
    try {
      return this.#routes(
        this.#uws.SSLApp({
          cert_file_name: this.#files.cert,
          key_file_name: this.#files.key,
          ssl_prefer_low_memory_usage: true,
        }) as SecureApp,
      )
    } catch {
      return undefined
    }
  }

  #settle(generation: Generation): void {
    const done = () => {
      generation.settled = true
      this.#release(generation)
    }
    // One tick after the timer: by then a connection that waited while the event loop was blocked has been passed on.
    setTimeout(() => setImmediate(done), settleMs).unref()
  }

  #release(generation: Generation): void {
    if (generation.connections === 0 && this.retired.includes(generation)) this.#end(generation)
  }

  #end(generation: Generation): void {
    this.retired.splice(this.retired.indexOf(generation), 1)
    generation.app.close()
  }

  close(): void {
    for (const { app } of this.retired.splice(0)) app.close()
    this.#current?.app.close()
  }
}

/** uWS's listen call with its options argument, which the package's types lack. */
type Listen = (
  host: string,
  port: number,
  options: number,
  done: (socket: ListenSocket | false) => void,
) => void

const open = (
  uws: Library,
  app: TemplatedApp,
  { host, port }: ListenAddress,
): Effect.Effect<Pick<Listening, "port" | "stop">, ServeError> =>
  Effect.callback((resume) => {
    const call = app.listen.bind(app) as unknown as Listen
    call(host, port, exclusivePort, (socket) => {
      if (socket === false) {
        const failed = Effect.flatMap(
          Effect.promise(() => listenProblem(host, port)),
          (problem) => {
            const cause = new Error(
              problem ?? `cannot listen on ${host}:${port}: the port was in use just now`,
            )
            return Effect.fail(new ServeError({ cause }))
          },
        )
        return resume(failed)
      }
      let open = true
      resume(
        Effect.succeed({
          port: uws.us_socket_local_port(socket),
          stop: () => {
            if (open) uws.us_listen_socket_close(socket)
            open = false
          },
        }),
      )
    })
  })
