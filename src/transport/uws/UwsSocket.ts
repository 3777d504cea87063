// WebSockets of uWebSockets.js: the behaviour of all of a listener, and one as the channel that LiveSocket uses.
import { freeMemory } from "#domain/queues/FreeMemory.ts"
import { TextFrame } from "#http/SocketFrames.ts"
import type { SocketChannel, SocketEvents } from "../exchange/Channel.ts"
import type { ListenerState } from "../exchange/ListenerState.ts"
import { droppedFactor } from "../exchange/LiveSocket.ts"
import type { HttpRequest, HttpResponse, TemplatedApp, UpgradeContext, WebSocket } from "./Uws.ts"

/** In an object of its own, because uWS copies the properties of what it is given. */
export interface UserData {
  readonly live: SocketEvents
}

/** Result of uWS's `send`: 0 buffered, 1 sent, 2 dropped. */
const dropped = 2

const text = new TextDecoder()

/** Why uWS has cut a connection without a close frame, by its words; undefined where the client has left. */
const cutFor = (reason: string): "silent" | "malformed" | undefined => {
  if (reason === "" || reason.startsWith("Received TCP FIN")) return undefined
  return reason.startsWith("WebSocket timed out") ? "silent" : "malformed"
}

class UwsSocket implements SocketChannel {
  readonly #ws: WebSocket<UserData>

  constructor(ws: WebSocket<UserData>) {
    this.#ws = ws
  }

  send(message: string | Uint8Array): boolean {
    const isBinary = typeof message !== "string" && !(message instanceof TextFrame)
    const result = this.#ws.send(message, isBinary)
    // uWS has sent or copied it.
    if (message instanceof TextFrame) freeMemory(message)
    return result !== dropped
  }

  end(code: number, reason: string): void {
    this.#ws.end(code, reason)
  }

  close(): void {
    this.#ws.close()
  }

  getBufferedAmount(): number {
    return this.#ws.getBufferedAmount()
  }

  cork(write: () => void): void {
    this.#ws.cork(write)
  }

  /** uWS cannot pause a WebSocket. */
  pause(): void {}

  resume(): void {}
}

/** The behaviour of every WebSocket of a listener. `onUpgrade` handles the handshake like any request. */
export const webSocketEvents = (
  listener: ListenerState,
  onUpgrade: (res: HttpResponse, req: HttpRequest, context: UpgradeContext) => void,
): Parameters<TemplatedApp["ws"]>[1] => {
  const live = (ws: WebSocket<unknown>): SocketEvents => (ws.getUserData() as UserData).live
  const { counters, settings } = listener
  return {
    // uWS drops a connection without a close frame as soon as a frame announces more; it is also the most that one client can
    // make uWS hold.
    maxPayloadLength: settings.discardedFrameBytes,
    // The buffered bytes are checked before a message is added, and writers wait at `outboundBytes`, so uWS drops only
    // messages of a writer that does not wait.
    maxBackpressure: settings.outboundBytes * droppedFactor,
    idleTimeout: settings.webSocketIdleSeconds,
    sendPingsAutomatically: true,
    upgrade: onUpgrade,
    // uWS calls this from inside `upgrade`, where no handler should go on and write.
    open: (ws) => {
      const socket = live(ws)
      queueMicrotask(() => socket.open(new UwsSocket(ws as WebSocket<UserData>)))
    },
    message: (ws, data, isBinary) => live(ws).message(new Uint8Array(data), isBinary),
    drain: (ws) => live(ws).drain(),
    close: (ws, code, reason) => {
      const said = text.decode(reason)
      live(ws).closed(code, said, code === 1006 ? cutFor(said) : undefined)
      // uWS's connection filter is not called for upgraded connections.
      counters.connections--
    },
  }
}
