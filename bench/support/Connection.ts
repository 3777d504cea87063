// One keep-alive connection of the load client: writes a request and reads its reply as cheaply as Node allows (one
// buffer for all reads, no parser, no streams).
//
// The client of the harness would do the same for more processor time, which the measured server lacks on a machine of two cores:
// measured in turn against bare `node:http`, a request takes this client 16 µs and that of the harness 80 µs, an event of a stream
// 2.8 µs and 5.4 µs. So it is kept for what is sent thousands of times a second; other requests go through Ask.ts.
import { connect, type Socket } from "node:net"
import { ReplyScanner } from "./ReplyScanner.ts"

export interface Target {
  readonly port: number
  /** Bearer credential; the raw server ignores it. */
  readonly key: string
}

/** The bytes of a JSON POST. */
export const postBytes = ({ key }: Target, path: string, body: unknown): Buffer => {
  const json = Buffer.from(JSON.stringify(body))
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), json])
}

/** Called after each read: events completed, the time, and whether the reply ended. */
type OnRead = (events: number, atMs: number, ended: boolean) => void

/** Bytes: enough for one token of each stream, sent between two ticks. */
const readBytes = 64 * 1024
/** Reads are handled one after the other, so all connections share one buffer. */
const readBuffer = Buffer.alloc(readBytes)

export class Connection {
  readonly scanner: ReplyScanner
  readonly #socket: Socket
  #onRead: OnRead = () => {}
  #busy = false
  #closed = false

  private constructor(
    target: Target,
    opened: (error: Error | undefined) => void,
    body?: (piece: Buffer) => void,
  ) {
    this.scanner = new ReplyScanner(body)
    this.#socket = connect({
      host: "127.0.0.1",
      port: target.port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          const atMs = performance.now()
          const events = this.scanner.push(readBuffer.subarray(0, length))
          if (this.scanner.ended) this.#busy = false
          this.#onRead(events, atMs, this.scanner.ended)
          return true
        },
      },
    })
    this.#socket.on("connect", () => opened(undefined))
    this.#socket.on("error", opened)
    this.#socket.on("end", () => {
      this.#closed = true
    })
    this.#socket.on("close", () => {
      this.#closed = true
      if (!this.#busy) return
      this.#busy = false
      this.#onRead(0, performance.now(), true)
    })
  }

  static open(target: Target, body?: (piece: Buffer) => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const connection: Connection = new Connection(
        target,
        (error) => (error === undefined ? resolve(connection) : reject(error)),
        body,
      )
    })
  }

  /** True if the server has closed it: Node's own closes a connection that was idle for 5 s. */
  get closed(): boolean {
    return this.#closed
  }

  /** Sends a request; the previous one must have ended. Returns the time at which it was passed to the kernel. */
  send(request: Buffer, onRead: OnRead): number {
    this.scanner.reset()
    this.#onRead = onRead
    const atMs = performance.now()
    if (this.#closed) {
      // No event of the socket follows.
      setImmediate(() => this.#onRead(0, performance.now(), true))
      return atMs
    }
    this.#busy = true
    this.#socket.write(request)
    return atMs
  }

  /** Closes at once; a reply that is still running calls back no more. */
  close(): void {
    this.#onRead = () => {}
    this.#socket.destroy()
  }
}
