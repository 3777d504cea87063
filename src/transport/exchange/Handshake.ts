// Upgrades a request to a WebSocket.
import { Cause, Effect, Exit, type Scope } from "effect"
import type { Headers } from "effect/http"
import * as Socket from "effect/socket/Socket"
import type { Exchange } from "./Exchange.ts"
import { LiveSocket, type SocketTerms } from "./LiveSocket.ts"
import { writeListenerHeaders, writeRequestHeaders } from "./ReplyHead.ts"

/** 1000 for a handler that finished, 1001 for one that was interrupted, 1011 for one that failed. */
const closeCode = (exit: Exit.Exit<unknown, unknown>): number =>
  Exit.isSuccess(exit) ? 1000 : Cause.hasInterruptsOnly(exit.cause) ? 1001 : 1011

/**
 * The exchange as a Socket, or undefined if it is no WebSocket request. The handshake is answered when the reader is
 * acquired; until then the handler can refuse with an ordinary response.
 */
export const upgradeExchange = (
  exchange: Exchange,
  headers: Headers.Headers,
  terms: SocketTerms,
): Socket.Socket | undefined => {
  // uWS takes any request with a key for a handshake; one that does not name the protocol was not checked (Framing).
  if (!exchange.res.upgradable || exchange.headers.upgrade?.toLowerCase() !== "websocket") return undefined
  const live = new LiveSocket(exchange, terms)
  const reader: Effect.Effect<Socket.Reader, Socket.SocketError, Scope.Scope> = Effect.acquireRelease(
    Effect.andThen(
      ownTick(exchange),
      Effect.suspend(() => {
        if (exchange.done) return Effect.fail(new Socket.SocketError({ reason: gone }))
        handshake(exchange, live, headers)
        return Effect.succeed({ pull: live.pull, upgrade: Socket.SocketUpgradeError.unsupported })
      }),
    ),
    (_, exit) => Effect.sync(() => live.leave(closeCode(exit))),
  )
  return Socket.make({
    reader,
    writer: Effect.succeed({ write: (chunk) => live.writeAll([chunk]), writeAll: live.writeAll }),
  })
}

/**
 * Waits until no request is being read, unless it is this one. A handler that has waited may go on inside of the callback of another
 * request, which has woken it; uWS takes that request for the upgraded one, and ends the process (`Cork buffer must not be held
 * across event loop iterations`).
 */
const ownTick = (exchange: Exchange): Effect.Effect<void> =>
  Effect.suspend(() =>
    exchange.inCallback
      ? Effect.void
      : Effect.callback((resume) => exchange.listener.ticks.afterwards(() => resume(Effect.void))),
  )

const gone = new Socket.SocketOpenError({
  kind: "Unknown",
  cause: new Error("the connection is closed or already upgraded"),
})

const protocolHeader = "sec-websocket-protocol"

const handshake = (exchange: Exchange, live: LiveSocket, headers: Headers.Headers): void => {
  const sent = exchange.headers
  const protocol = headers[protocolHeader] ?? sent[protocolHeader]?.split(",")[0]?.trim() ?? ""
  const { inCallback, res } = exchange
  exchange.upgraded = true
  exchange.status = 101
  exchange.finish()
  exchange.corked(() => {
    res.writeStatus(101)
    writeListenerHeaders(exchange, {})
    writeRequestHeaders(exchange, 101)
    for (const name in headers) if (name !== protocolHeader) res.writeHeader(name, headers[name] as string)
  })
  res.upgrade(live, { protocol, headers: sent, inCallback })
}
