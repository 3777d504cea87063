// How a listener accepts connections with Node's own HTTP server: plain or over TLS, counted, and limited.
//
// Directly over node:http, and not over Effect's NodeHttpServer: that one has no place for the limits of this folder's
// parent (bodies in pieces, readers that stall, refusals before a body is read, connections that pipeline), and runs
// every WebSocket handshake before the handler can refuse it.
import { readFileSync } from "node:fs"
import {
  Server as HttpServer,
  type IncomingMessage,
  type ServerOptions,
  type ServerResponse,
} from "node:http"
import { Server as HttpsServer } from "node:https"
import { Server as NetServer, type Socket } from "node:net"
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
import { listenProblemOf } from "../ListenProblem.ts"
import { NodeConnection } from "./NodeConnection.ts"
import { NodeSockets } from "./NodeSocket.ts"

/** The same 10 to 12 s as with uWebSockets.js: for a head, a TLS handshake, and a connection without a request. */
const headTimeoutMs = 10_000
const checkEveryMs = 2_000

const serverOptions: ServerOptions = {
  // Twice our limit, so that a slightly larger head gets the answer that names it, as with uWebSockets.js.
  maxHeaderSize: 64 * 1024,
  headersTimeout: headTimeoutMs,
  keepAliveTimeout: headTimeoutMs,
  // Bodies have deadlines of their own.
  requestTimeout: 0,
  connectionsCheckingInterval: checkEveryMs,
  // Framing refuses these itself, and HTTP/1.0 needs no Host.
  requireHostHeader: false,
  insecureHTTPParser: false,
  noDelay: true,
}

const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket"

const readFiles = (files: TlsFiles) =>
  Effect.try({
    try: () => ({
      cert: readFileSync(files.cert),
      key: readFileSync(files.key),
      minVersion: "TLSv1.2" as const,
    }),
    catch: () => refusedFiles(files),
  })

/** Listens with Node's own server and passes every request to the dispatcher. */
export const listenNode = Effect.fnUntraced(function* (
  address: ListenAddress,
  dispatcher: Dispatcher,
  gate: ConnectionGate,
): Effect.fn.Return<Listening, ServeError> {
  const options = { ...serverOptions, shouldUpgradeCallback: isWebSocket }
  const { tls } = address
  const secure = tls === undefined ? undefined : yield* makeSecure(tls, options)
  const server = secure ?? new HttpServer(options)
  const certificates = new Certificates(secure, tls)
  const sockets = accept(server, dispatcher, gate, certificates)
  const port = yield* open(server, address)
  return {
    port,
    // Not `server.close()`, which also closes idle connections, on which a request may be on its way.
    stop: () => void NetServer.prototype.close.call(server),
    close: () => {
      if (server.listening) NetServer.prototype.close.call(server)
      server.close()
      for (const socket of sockets) socket.destroy()
    },
    renew: certificates.renew,
    retired: () => certificates.retired.length,
  }
})

const makeSecure = (files: TlsFiles, options: ServerOptions): Effect.Effect<HttpsServer, ServeError> =>
  Effect.flatMap(readFiles(files), (pair) =>
    Effect.try({
      try: () => new HttpsServer({ ...options, ...pair, handshakeTimeout: headTimeoutMs }),
      catch: () => refusedFiles(files),
    }),
  )

/** Counts and limits the connections, and gives each its requests. Returns the open sockets. */
const accept = (
  server: HttpServer | HttpsServer,
  dispatcher: Dispatcher,
  gate: ConnectionGate,
  certificates: Certificates,
): ReadonlySet<Socket> => {
  const { counters } = dispatcher.state
  const sockets = new Set<Socket>()
  const connections = new Map<Socket, NodeConnection>()
  const webSockets = new NodeSockets(dispatcher.state)
  // Every header that came is counted; without this Node drops those behind the 2,000th.
  server.maxHeadersCount = 0

  const admit = (socket: Socket): void => {
    counters.connections++
    sockets.add(socket)
    socket.once("close", () => {
      counters.connections--
      sockets.delete(socket)
    })
    if (!gate.admits(plainAddress(socket.remoteAddress))) socket.destroy()
  }
  const connect = (socket: Socket): void => {
    // What is wrong with the connection ends with `close`.
    socket.on("error", () => {})
    connections.set(
      socket,
      new NodeConnection(socket, plainAddress(socket.remoteAddress), dispatcher, webSockets),
    )
    socket.once("close", () => connections.delete(socket))
  }
  server.prependListener("connection", (socket: Socket) => {
    admit(socket)
    certificates.connected(socket)
    if (server instanceof HttpServer) connect(socket)
  })
  if (server instanceof HttpsServer) server.prependListener("secureConnection", connect)
  // Behind the listener with which Node begins to read.
  server.on(server instanceof HttpsServer ? "secureConnection" : "connection", (socket: Socket) =>
    connections.get(socket)?.accepted(),
  )

  const request = (one: IncomingMessage, response: ServerResponse): void =>
    connections.get(one.socket)?.request(one, response)
  server.on("request", request)
  // Another expectation is ignored, as with uWebSockets.js.
  server.on("checkExpectation", request)
  server.on("checkContinue", (one: IncomingMessage, response: ServerResponse) =>
    connections.get(one.socket)?.request(one, response, { expectsContinue: true }),
  )
  const withoutResponse = (one: IncomingMessage, _socket: unknown, early: Buffer): void =>
    connections.get(one.socket)?.request(one, undefined, { early })
  server.on("upgrade", withoutResponse)
  server.on("connect", withoutResponse)
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const connection = connections.get(socket as Socket)
    if (connection === undefined) socket.destroy()
    else connection.broken(error)
  })
  return sockets
}

/** An IPv4 client of an IPv6 listener is named by its IPv4 address. */
const plainAddress = (address = ""): string => (address.startsWith("::ffff:") ? address.slice(7) : address)

/** A certificate that was replaced, and its connections. */
interface Retired {
  readonly connections: Set<Socket>
}

/** The certificate of new connections, and those that open connections still use. */
class Certificates {
  /** Oldest first. */
  readonly retired: Array<Retired> = []
  #current: Retired = { connections: new Set() }
  readonly #tls: { readonly server: HttpsServer; readonly files: TlsFiles } | undefined

  constructor(server: HttpsServer | undefined, files: TlsFiles | undefined) {
    this.#tls = server === undefined || files === undefined ? undefined : { server, files }
  }

  connected(socket: Socket): void {
    if (this.#tls === undefined) return
    const own = this.#current
    own.connections.add(socket)
    socket.once("close", () => {
      own.connections.delete(socket)
      if (own.connections.size === 0) this.#forget(own)
    })
  }

  /** Makes the files' certificate the current one. */
  readonly renew: Effect.Effect<void, ServeError> = Effect.suspend(() => {
    if (this.#tls === undefined) return Effect.void
    const { files, server } = this.#tls
    const exchange = Effect.flatMap(readFiles(files), (pair) =>
      Effect.try({ try: () => server.setSecureContext(pair), catch: () => refusedFiles(files) }),
    )
    return Effect.andThen(
      exchange,
      Effect.suspend(() => this.#retire()),
    )
  })

  #retire(): Effect.Effect<void> {
    const old = this.#current
    this.#current = { connections: new Set() }
    if (old.connections.size === 0) return Effect.void
    this.retired.push(old)
    const [oldest] = this.retired
    if (this.retired.length <= retiredCertificates || oldest === undefined) return Effect.void
    const { size } = oldest.connections
    this.#forget(oldest)
    for (const socket of oldest.connections) socket.destroy()
    return warnOfRetired(size)
  }

  #forget(one: Retired): void {
    const at = this.retired.indexOf(one)
    if (at >= 0) this.retired.splice(at, 1)
  }
}

const open = (
  server: HttpServer | HttpsServer,
  { host, port }: ListenAddress,
): Effect.Effect<number, ServeError> =>
  Effect.callback((resume) => {
    const failed = (cause: NodeJS.ErrnoException): void =>
      resume(Effect.fail(new ServeError({ cause: new Error(listenProblemOf(host, port, cause)) })))
    server.once("error", failed)
    server.listen({ host, port, exclusive: true }, () => {
      server.off("error", failed)
      const address = server.address()
      resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : port))
    })
  })
