// WebSockets over Node's own server, with `ws`: the handshake, and one socket as the channel that LiveSocket uses.
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { type WebSocket, WebSocketServer } from "ws"
import { freeMemory } from "#domain/queues/FreeMemory.ts"
import { TextFrame } from "#http/SocketFrames.ts"
import { nowMs, type Watched } from "../Deadlines.ts"
import type { SocketChannel, SocketEvents } from "../exchange/Channel.ts"
import type { ListenerState } from "../exchange/ListenerState.ts"
import { droppedFactor } from "../exchange/LiveSocket.ts"
import { LargeMessages } from "./LargeMessages.ts"
import { SlicedReads } from "./SlicedReads.ts"

export class NodeSockets {
  readonly #listener: ListenerState
  readonly #server: WebSocketServer

  constructor(listener: ListenerState) {
    const { discardedFrameBytes, lingerMs } = listener.settings
    this.#listener = listener
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      // `ws` refuses a message that announces more, with 1009 and without a reason.
      maxPayload: discardedFrameBytes,
      // Pongs are sent below, where their number is bounded.
      autoPong: false,
      closeTimeout: lingerMs,
    }
    this.#server = new WebSocketServer(options)
  }

  /** Answers the handshake, which was checked before (see Framing), with these headers besides its own. */
  open(
    { headers, method }: IncomingMessage,
    socket: Socket,
    early: Buffer,
    live: SocketEvents,
    more: ReadonlyArray<string>,
  ): void {
    this.#server.once("headers", (lines) => {
      for (let at = 0; at < more.length; at += 2) lines.push(`${more[at]}: ${more[at + 1]}`)
    })
    // Without the offered subprotocols: `ws` would refuse a list that is no list of tokens, and chooses none.
    const { upgrade } = headers
    const bare = {
      method,
      headers: {
        upgrade,
        "sec-websocket-key": headers["sec-websocket-key"],
        "sec-websocket-version": headers["sec-websocket-version"],
      },
    } as IncomingMessage
    let opened = false
    this.#server.handleUpgrade(bare, socket, early, (ws) => {
      opened = true
      new NodeSocket(ws, socket, live, this.#listener)
    })
    if (opened) return
    // The client had left.
    this.#server.removeAllListeners("headers")
    live.open(closedChannel)
    live.closed(1006, "")
  }
}

const closedChannel: SocketChannel = {
  send: () => false,
  end: () => {},
  close: () => {},
  getBufferedAmount: () => 0,
  cork: (write) => write(),
  pause: () => {},
  resume: () => {},
}

class NodeSocket implements SocketChannel, Watched {
  listedAt = -1
  readonly #ws: WebSocket
  readonly #socket: Socket
  readonly #live: SocketEvents
  readonly #listener: ListenerState
  /** True once LiveSocket knows of the end. */
  #over = false
  #receivedBytes = 0
  #quietSinceMs = nowMs()
  #pinged = false
  #closeAtMs = Number.POSITIVE_INFINITY
  #cut: "silent" | "malformed" | undefined

  constructor(ws: WebSocket, socket: Socket, live: SocketEvents, listener: ListenerState) {
    this.#ws = ws
    this.#socket = socket
    this.#live = live
    this.#listener = listener
    socket.on("drain", () => this.#over || live.drain())
    ws.on("message", (data, isBinary) => {
      if (!this.#over) live.message(data as Buffer, isBinary)
    })
    this.#takeLargeMessages()
    ws.on("ping", (data) => this.#ping(data))
    // An invalid frame. `ws` has sent a close frame, and waits for the answer of a client that does not follow the rules.
    ws.on("error", () => {
      this.#cut = "malformed"
      this.#ending(1006, "")
    })
    ws.on("close", (code, reason) => {
      listener.deadlines.unwatch(this)
      this.#tell(code, reason.toString())
    })
    listener.deadlines.watch(this)
    live.open(this)
  }

  send(message: string | Uint8Array): boolean {
    // A writer that waits stays below half of this.
    if (this.#ws.bufferedAmount > this.#listener.settings.outboundBytes * droppedFactor) return false
    if (message instanceof TextFrame) this.#ws.send(message, { binary: false }, () => freeMemory(message))
    else this.#ws.send(message, { binary: typeof message !== "string" })
    return true
  }

  end(code: number, reason: string): void {
    if (this.#over) return
    // The close frame of the client is read.
    this.#ws.resume()
    this.#ws.close(code, reason)
    this.#ending(code, reason)
  }

  close(): void {
    this.#ws.terminate()
  }

  getBufferedAmount(): number {
    return this.#ws.bufferedAmount
  }

  cork(write: () => void): void {
    this.#socket.cork()
    try {
      write()
    } finally {
      this.#socket.uncork()
    }
  }

  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  sweep(now: number): void {
    if (now >= this.#closeAtMs) return void this.#ws.terminate()
    const idleMs = this.#listener.settings.webSocketIdleSeconds * 1_000
    if (idleMs === 0 || this.#over) return
    const { bytesRead } = this.#socket
    // What a paused client sends, a pong for example, is not read.
    if (bytesRead !== this.#receivedBytes || this.#ws.isPaused) {
      this.#receivedBytes = bytesRead
      this.#quietSinceMs = now
      this.#pinged = false
    }
    const quietMs = now - this.#quietSinceMs
    if (quietMs >= idleMs) {
      this.#cut = "silent"
      this.#ws.terminate()
    } else if (quietMs >= idleMs / 2 && !this.#pinged) {
      this.#pinged = true
      this.#ws.ping()
    }
  }

  /** Reads what arrives before `ws` does. */
  #takeLargeMessages(): void {
    const live = this.#live
    const listener = this.#listener
    const socket = this.#socket
    const ws = this.#ws
    const [toWs] = socket.listeners("data") as Array<(chunk: Buffer) => void>
    if (toWs === undefined) throw new Error("ws does not read its socket")
    const messages = new LargeMessages({
      mostBytes: live.mostBytes,
      discardedBytes: listener.settings.discardedFrameBytes,
      holds: (bytes) => this.#over || live.arriving(bytes),
      // After an invalid frame `ws` reads nothing more.
      pass: (bytes) => {
        if (this.#cut !== "malformed") toWs.call(socket, bytes)
      },
      message: (bytes, isBinary) => {
        if (!this.#over) live.message(bytes, isBinary, true)
      },
      tooLarge: (first, last, isBinary) => {
        if (!this.#over) live.tooLarge(first, last, isBinary)
      },
      refuse: (code) => {
        this.#cut = "malformed"
        ws.close(code)
        this.#ending(1006, "")
      },
    })
    socket.off("data", toWs)
    socket.on("data", (chunk: Buffer) => messages.read(chunk))
    new SlicedReads(socket, {
      comes: () => "in chunks",
      hasRoom: () => !ws.isPaused,
      isHeldUp: () => ws.isPaused,
    })
  }

  /** A client that reads no pongs gets no more of them, so that they do not pile up. */
  #ping(data: Buffer): void {
    if (this.#over) return
    if (this.#ws.bufferedAmount <= this.#listener.settings.outboundBytes) this.#ws.pong(data)
  }

  /** The close frame was sent: the connection is closed after some time, whatever the client does. */
  #ending(code: number, reason: string): void {
    this.#closeAtMs = nowMs() + this.#listener.settings.lingerMs
    this.#tell(code, reason)
  }

  #tell(code: number, reason: string): void {
    if (this.#over) return
    this.#over = true
    this.#live.closed(code, reason, this.#cut)
  }
}
