// Upgrades a request to a WebSocket, and defines the behaviour of all WebSockets of a listener.
import { Cause, Effect, Exit, type Scope } from "effect"
import type { Headers } from "effect/http"
import * as Socket from "effect/socket/Socket"
import type { Exchange, ListenerState, UpgradeContext } from "./Exchange.ts"
import { LiveSocket, type UserData } from "./LiveSocket.ts"
import { writeListenerHeaders, writeRequestHeaders } from "./ReplyHead.ts"
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocket } from "./Uws.ts"

/**
 * uWS drops a connection without a close frame as soon as a frame announces more than its limit. So our own limit
 * answers with 1009, and uWS's is this many times larger; it is also the most that one client can make uWS hold.
 */
const UWS_FRAME_FACTOR = 4

const text = new TextDecoder()

/** 1000 for a handler that finished, 1001 for one that was interrupted, 1011 for one that failed. */
const closeCode = (exit: Exit.Exit<unknown, unknown>): number =>
  Exit.isSuccess(exit) ? 1000 : Cause.hasInterruptsOnly(exit.cause) ? 1001 : 1011

/**
 * The exchange as a Socket, or undefined if it is no WebSocket request. The handshake is answered when the reader is
 * acquired; until then the handler can refuse with an ordinary response.
 */
export const upgradeExchange = (exchange: Exchange, headers: Headers.Headers): Socket.Socket | undefined => {
  const context = exchange.upgradeContext
  if (context === undefined) return undefined
  const live = new LiveSocket(exchange)
  const reader: Effect.Effect<Socket.Reader, Socket.SocketError, Scope.Scope> = Effect.acquireRelease(
    Effect.suspend(() => {
      if (exchange.done) return Effect.fail(new Socket.SocketError({ reason: gone }))
      handshake(exchange, context, live, headers)
      return Effect.succeed({ pull: live.pull, upgrade: Socket.SocketUpgradeError.unsupported })
    }),
    (_, exit) => Effect.sync(() => live.finish(closeCode(exit), "")),
  )
  return Socket.make({
    reader,
    writer: Effect.succeed({ write: (chunk) => live.writeAll([chunk]), writeAll: live.writeAll }),
  })
}

const gone = new Socket.SocketOpenError({
  kind: "Unknown",
  cause: new Error("the connection is closed or already upgraded"),
})

const PROTOCOL = "sec-websocket-protocol"

const handshake = (
  exchange: Exchange,
  context: UpgradeContext,
  live: LiveSocket,
  headers: Headers.Headers,
): void => {
  const sent = exchange.headers
  const protocol = headers[PROTOCOL] ?? sent[PROTOCOL]?.split(",")[0]?.trim() ?? ""
  exchange.corked(() => {
    exchange.upgraded = true
    exchange.status = 101
    exchange.finish()
    const { res } = exchange
    res.writeStatus("101 Switching Protocols")
    writeListenerHeaders(exchange, {})
    writeRequestHeaders(exchange, 101)
    for (const name in headers) if (name !== PROTOCOL) res.writeHeader(name, headers[name] as string)
    const userData: UserData = { live }
    res.upgrade(
      userData,
      sent["sec-websocket-key"] ?? "",
      protocol,
      sent["sec-websocket-extensions"] ?? "",
      context,
    )
  })
}

/** The behaviour of every WebSocket of a listener. `onUpgrade` handles the handshake like any request. */
export const webSocketEvents = (
  listener: ListenerState,
  onUpgrade: (res: HttpResponse, req: HttpRequest, context: UpgradeContext) => void,
): Parameters<TemplatedApp["ws"]>[1] => {
  const live = (ws: WebSocket<unknown>): LiveSocket => (ws.getUserData() as UserData).live
  const { settings } = listener
  return {
    maxPayloadLength: settings.frameBytes * UWS_FRAME_FACTOR,
    // The buffered bytes are checked before a message is added, and writers wait at `outboundBytes`, so uWS drops only
    // messages of a writer that does not wait.
    maxBackpressure: settings.outboundBytes * 2,
    idleTimeout: settings.webSocketIdleSeconds,
    sendPingsAutomatically: true,
    upgrade: onUpgrade,
    // uWS calls this from inside `upgrade`. When the `cork` around it returns, it reads the state of the former
    // response from memory that it has freed. An allocation in between (e.g. a function being compiled) may make it
    // close the new socket at once: 2 of 30 first sockets of a process (measured), none with this delay.
    open: (ws) => {
      const socket = live(ws)
      queueMicrotask(() => socket.open(ws as WebSocket<UserData>))
    },
    message: (ws, data, isBinary) => live(ws).message(data, isBinary),
    drain: (ws) => live(ws).drain(),
    close: (ws, code, reason) => live(ws).closed(code, text.decode(reason)),
  }
}
