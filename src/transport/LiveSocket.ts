// A WebSocket as an Effect Socket: bounded in both directions, every end reported with its code and reason.
// Upgraded by UwsRequest when a handler acquires the reader; uWS's socket events arrive through `webSocketEvents`.
// After the upgrade the peer's end is what `pull` and the writer fail with; the handler's fiber is not interrupted.
import { Cause, Effect, Exit, type Scope } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { Headers } from "effect/http"
import * as Socket from "effect/socket/Socket"
import { nowMs, type Watched } from "./Deadlines.ts"
import type { Exchange, ListenerState, UpgradeContext } from "./Exchange.ts"
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocket } from "./Uws.ts"

type Frame = string | Uint8Array
/** Boxed, because uWS copies the properties of what it is given. */
interface UserData {
  readonly live: LiveSocket
}

const text = new TextDecoder()

/**
 * uWS drops a connection without a close frame as soon as a frame announces more than its limit, so the limit that
 * answers 1009 is ours and uWS's stands above it. It is also what one peer can make uWS hold.
 */
const UWS_FRAME_FACTOR = 4

export class LiveSocket implements Watched {
  private readonly listener: ListenerState
  private ws: WebSocket<UserData> | undefined
  private end: Socket.SocketError | undefined
  private inbound: Array<Frame> = []
  private inboundBytes = 0
  private puller: (() => void) | undefined
  private readonly openWaiters = new Set<() => void>()
  private readonly drainWaiters = new Set<() => void>()
  private outboundBytes = 0
  private movedMs = 0

  constructor(listener: ListenerState) {
    this.listener = listener
  }

  // ---------------------------------------------------------------- for handlers

  readonly pull: Effect.Effect<NonEmptyReadonlyArray<Frame>, Socket.SocketError> = Effect.callback(
    (resume) => {
      const step = (): void => {
        this.puller = undefined
        if (this.inbound.length > 0) resume(Effect.succeed(this.take()))
        else if (this.end !== undefined) resume(Effect.fail(this.end))
        else this.puller = step
      }
      step()
      return Effect.sync(() => {
        this.puller = undefined
      })
    },
  )

  /** Sends in one syscall, then waits while more than the bound is still unsent. */
  readonly writeAll = (
    chunks: ReadonlyArray<Frame | Socket.CloseEvent>,
  ): Effect.Effect<void, Socket.SocketError> =>
    Effect.suspend(() => {
      if (this.end !== undefined) return Effect.fail(this.end)
      if (this.ws === undefined) return Effect.andThen(this.opened, this.writeAll(chunks))
      if (this.send(this.ws, chunks)) {
        // Its frame is lost, so what follows would make no sense.
        this.close(1013, "reader too slow")
        return Effect.fail(
          new Socket.SocketError({ reason: new Socket.SocketWriteError({ cause: "dropped" }) }),
        )
      }
      return this.isFull() ? this.drained : Effect.void
    })

  /** Sends a close frame; the peer's `pull` is done at once, ours fails with the same code. */
  close(code: number, reason: string): void {
    this.ws?.end(sendableCode(code), shortReason(reason))
  }

  // ---------------------------------------------------------------- for uWS

  open(ws: WebSocket<UserData>): void {
    this.ws = ws
    this.listener.counters.webSockets++
    for (const wake of this.openWaiters) wake()
  }

  message(data: ArrayBuffer, isBinary: boolean): void {
    const { settings } = this.listener
    if (this.end !== undefined) return
    if (data.byteLength > settings.frameBytes) {
      return this.close(1009, `message larger than ${settings.frameBytes} bytes`)
    }
    // A copy: uWS takes the memory back when this callback returns.
    this.inbound.push(isBinary ? new Uint8Array(data.slice(0)) : text.decode(data))
    this.inboundBytes += data.byteLength
    this.puller?.()
    if (this.inboundBytes > settings.inboundBytes) this.close(1009, "messages come faster than they are read")
  }

  drain(): void {
    if (!this.isFull()) this.wakeWriters()
  }

  closed(code: number, reason: string): void {
    this.ws = undefined
    this.end = new Socket.SocketError({ reason: new Socket.SocketCloseError({ code, closeReason: reason }) })
    this.listener.counters.webSockets--
    // uWS's connection filter does not hear of upgraded connections.
    this.listener.counters.connections--
    for (const wake of this.openWaiters) wake()
    this.wakeWriters()
    this.puller?.()
  }

  /** A writer waits: cut the reader when it takes nothing for too long. */
  sweep(now: number): void {
    const bytes = this.ws?.getBufferedAmount() ?? 0
    if (bytes !== this.outboundBytes) {
      this.outboundBytes = bytes
      this.movedMs = now
    } else if (now - this.movedMs >= this.listener.settings.stallTimeoutMs) {
      this.listener.counters.slowReadersCut++
      this.ws?.close()
    }
  }

  // ---------------------------------------------------------------- inside

  private take(): NonEmptyReadonlyArray<Frame> {
    const taken = this.inbound as unknown as NonEmptyReadonlyArray<Frame>
    this.inbound = []
    this.inboundBytes = 0
    return taken
  }

  /** True when uWS dropped a message. */
  private send(ws: WebSocket<UserData>, chunks: ReadonlyArray<Frame | Socket.CloseEvent>): boolean {
    let dropped = false
    ws.cork(() => {
      for (const chunk of chunks) {
        if (Socket.isCloseEvent(chunk)) return this.close(chunk.code, chunk.reason ?? "")
        if (ws.send(chunk, typeof chunk !== "string") === DROPPED) dropped = true
      }
    })
    return dropped
  }

  private isFull(): boolean {
    return this.ws !== undefined && this.ws.getBufferedAmount() > this.listener.settings.outboundBytes
  }

  private readonly opened: Effect.Effect<void> = waitOn(this.openWaiters)

  private readonly drained: Effect.Effect<void, Socket.SocketError> = Effect.suspend(() => {
    this.movedMs = nowMs()
    this.listener.deadlines.watch(this)
    return Effect.andThen(
      waitOn(this.drainWaiters),
      Effect.suspend(() => (this.end === undefined ? Effect.void : Effect.fail(this.end))),
    )
  })

  private wakeWriters(): void {
    this.listener.deadlines.unwatch(this)
    for (const wake of this.drainWaiters) wake()
  }
}

/** uWS's `send`: 0 buffered, 1 sent, 2 dropped. */
const DROPPED = 2

function waitOn(waiters: Set<() => void>): Effect.Effect<void> {
  return Effect.callback((resume) => {
    const wake = (): void => {
      waiters.delete(wake)
      resume(Effect.void)
    }
    waiters.add(wake)
    return Effect.sync(() => waiters.delete(wake))
  })
}

/** RFC 6455 7.4: what may stand in a close frame. */
const sendableCode = (code: number): number =>
  (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
  (code >= 3000 && code <= 4999)
    ? code
    : 1011

/** A control frame carries 125 bytes, two of them the code. */
const shortReason = (reason: string): string => {
  let short = reason.slice(0, 123)
  while (Buffer.byteLength(short) > 123) short = short.slice(0, -1)
  return short
}

/** A finished handler closes normally, an interrupted one goes away, a failed one has failed. */
const closeCode = (exit: Exit.Exit<unknown, unknown>): number =>
  Exit.isSuccess(exit) ? 1000 : Cause.hasInterruptsOnly(exit.cause) ? 1001 : 1011

/**
 * The exchange as a Socket, or undefined if it is no WebSocket request. The handshake is answered when the reader is
 * acquired; until then the handler can still refuse with an ordinary response.
 */
export const upgradeExchange = (exchange: Exchange, headers: Headers.Headers): Socket.Socket | undefined => {
  const context = exchange.upgradeContext
  if (context === undefined) return undefined
  const live = new LiveSocket(exchange.listener)
  const reader: Effect.Effect<Socket.Reader, Socket.SocketError, Scope.Scope> = Effect.acquireRelease(
    Effect.suspend(() => {
      if (exchange.done) return Effect.fail(new Socket.SocketError({ reason: gone }))
      handshake(exchange, context, live, headers)
      return Effect.succeed({ pull: live.pull, upgrade: Socket.SocketUpgradeError.unsupported })
    }),
    (_, exit) => Effect.sync(() => live.close(closeCode(exit), "")),
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
    exchange.finish()
    const { res, listener } = exchange
    res.writeStatus("101 Switching Protocols")
    for (const [name, value] of listener.responseHeaders) res.writeHeader(name, value)
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

/** The behaviour of every WebSocket of a listener; `onUpgrade` treats the handshake as any request. */
export const webSocketEvents = (
  listener: ListenerState,
  onUpgrade: (res: HttpResponse, req: HttpRequest, context: UpgradeContext) => void,
): Parameters<TemplatedApp["ws"]>[1] => {
  const live = (ws: WebSocket<unknown>): LiveSocket => (ws.getUserData() as UserData).live
  const { settings } = listener
  return {
    maxPayloadLength: settings.frameBytes * UWS_FRAME_FACTOR,
    // Looked at before a message is added, and writers wait at `outboundBytes`: only a writer that does not wait for
    // its turn is ever dropped.
    maxBackpressure: settings.outboundBytes * 2,
    idleTimeout: settings.webSocketIdleSeconds,
    sendPingsAutomatically: true,
    upgrade: onUpgrade,
    open: (ws) => live(ws).open(ws as WebSocket<UserData>),
    message: (ws, data, isBinary) => live(ws).message(data, isBinary),
    drain: (ws) => live(ws).drain(),
    close: (ws, code, reason) => live(ws).closed(code, text.decode(reason)),
  }
}
