// Sends one input to a node over a TCP connection and says what became of it.
import { connect, type Socket } from "node:net"
import { ReplyScanner } from "../support/ReplyScanner.ts"
import type { Input } from "./Inputs.ts"

/** An input with broken framing may leave the node waiting for more; it is given up after this. */
const silentMs = 150
/** After the first bytes of an answer to broken framing, and after a conversation's last frame. */
const settleMs = 30
/** A request with right framing and a right handshake must be answered within this. */
const answerMs = 20_000
/** Connections that are kept for the next request with right framing. */
const mostKept = 32

/**
 * A status (`200`), `101 open` or `101 closed` for conversations, `closed` without an answer, `silent` for broken framing that
 * the node waits on, `refused` where no connection was made, `no answer` where one was due.
 */
export type Outcome = string

/** A connection without a request under way that the node may still close. */
class Kept {
  readonly #sockets: Array<Socket> = []

  take(): Socket | undefined {
    for (;;) {
      const socket = this.#sockets.pop()
      if (socket === undefined || !socket.destroyed) return socket
    }
  }

  keep(socket: Socket): void {
    socket.removeAllListeners()
    socket.on("error", () => {})
    socket.on("data", () => socket.destroy())
    if (this.#sockets.length < mostKept) this.#sockets.push(socket)
    else socket.destroy()
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.length = 0
  }
}

const cut = (bytes: Buffer, pieces: number): ReadonlyArray<Buffer> => {
  const size = Math.max(1, Math.ceil(bytes.length / pieces))
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )
}

/** Writes each piece in a tick of its own; `written` is called with the last. */
const write = (socket: Socket, pieces: ReadonlyArray<Buffer>, written: () => void = () => {}): void => {
  const [first, ...rest] = pieces
  if (socket.destroyed) return
  if (first !== undefined) socket.write(first)
  if (rest.length > 0) setImmediate(() => write(socket, rest, written))
  else written()
}

export class Deliveries {
  readonly #port: number
  readonly #kept = new Kept()

  constructor(port: number) {
    this.#port = port
  }

  close(): void {
    this.#kept.close()
  }

  deliver(input: Input): Promise<Outcome> {
    const kept = input.framed ? this.#kept.take() : undefined
    const socket = kept ?? connect({ port: this.#port, host: "127.0.0.1", noDelay: true })
    return new Promise((resolve) => {
      const scanner = new ReplyScanner()
      let status = ""
      let timer: NodeJS.Timeout
      const end = (outcome: Outcome, keep = false): void => {
        clearTimeout(timer)
        if (keep) this.#kept.keep(socket)
        else {
          socket.removeAllListeners()
          socket.on("error", () => {})
          socket.destroy()
        }
        resolve(outcome)
      }
      const endIn = (ms: number, outcome: Outcome): void => {
        clearTimeout(timer)
        timer = setTimeout(() => end(outcome), ms)
      }
      const readFramed = (data: Buffer): void => {
        try {
          scanner.push(data)
        } catch {
          return end(status)
        }
        // An answer may come before all of the request was sent.
        if (scanner.ended) end(status, whole)
      }
      const readFirst = (data: Buffer): void => {
        status = /^HTTP\/1\.1 (\d{3})/.exec(data.toString("latin1", 0, 12))?.[1] ?? "not HTTP"
        if (input.framed) return
        if (status === "101" && input.frames !== undefined) {
          write(socket, cut(input.frames, input.pieces))
          status = "101 closed"
          return endIn(2 * settleMs, "101 open")
        }
        endIn(settleMs, status)
      }
      socket.on("data", (data) => {
        if (status === "") readFirst(data)
        if (input.framed) readFramed(data)
      })
      socket.on("error", () => {})
      socket.on("close", () => end(status === "" ? (connected ? "closed" : "refused") : status))
      let connected = kept !== undefined
      socket.on("connect", () => {
        connected = true
      })
      const due = input.framed || input.kind === "frames"
      endIn(due ? answerMs : silentMs, due ? "no answer" : "silent")
      let whole = false
      write(socket, cut(input.bytes, input.pieces), () => {
        whole = true
      })
    })
  }
}
