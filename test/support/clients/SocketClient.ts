// A WebSocket client for tests, based on the `ws` package. It records frames, the code and reason of a close, and the HTTP answer of
// a refused handshake.
import WebSocket from "ws"

export interface Refused {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

interface Closed {
  readonly code: number
  readonly reason: string
}

/** Longest wait for a frame or a close, so that a broken server fails one test and not the run. */
const patienceMs = 60_000

export class SocketClient {
  readonly socket: WebSocket
  /** Every text frame so far, decoded. */
  readonly frames: Array<Record<string, unknown>> = []
  readonly closed: Promise<Closed>
  #isClosed = false
  #changed: () => void = () => {}

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on("message", (data, isBinary) => {
      if (isBinary) throw new Error("a binary frame")
      this.frames.push(JSON.parse(String(data)) as Record<string, unknown>)
      this.#changed()
    })
    this.closed = new Promise((resolve) =>
      socket.on("close", (code, reason) => {
        this.#isClosed = true
        this.#changed()
        resolve({ code, reason: String(reason) })
      }),
    )
  }

  /** The open socket, or the answer that refused the handshake. */
  static connect(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    protocols: ReadonlyArray<string> = [],
  ): Promise<SocketClient | Refused> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url, [...protocols], { headers })
      const client = new SocketClient(socket)
      socket.on("open", () => resolve(client))
      socket.on("unexpected-response", (_request, response) => {
        let body = ""
        response.setEncoding("utf8")
        response.on("data", (text: string) => {
          body += text
        })
        response.on("end", () => {
          resolve({ status: response.statusCode ?? 0, body, headers: response.headers })
          socket.terminate()
        })
      })
      socket.on("error", (error) => {
        if (socket.readyState === WebSocket.CONNECTING) reject(error)
      })
    })
  }

  static async open(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    protocols: ReadonlyArray<string> = [],
  ): Promise<SocketClient> {
    const client = await SocketClient.connect(url, headers, protocols)
    if (client instanceof SocketClient) return client
    throw new Error(`refused: ${client.status} ${client.body}`)
  }

  send(frame: object | string): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame))
  }

  /** Waits until `condition` holds for the frames so far, and no longer than this for the next one. */
  async until(
    condition: (frames: ReadonlyArray<Record<string, unknown>>) => boolean,
    patience = patienceMs,
  ): Promise<void> {
    while (!condition(this.frames)) {
      if (this.#isClosed)
        throw new Error(
          `closed before: ${JSON.stringify(await this.closed)} ${JSON.stringify(this.frames.slice(-3))}`,
        )
      await new Promise<void>((resolve, reject) => {
        const last = () =>
          reject(new Error(`nothing more came after ${JSON.stringify(this.frames.slice(-3))}`))
        const timer = setTimeout(last, patience)
        this.#changed = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Frames with this request id. */
  of(requestId: string | number): ReadonlyArray<Record<string, unknown>> {
    return this.frames.filter((frame) => frame.request_id === requestId)
  }

  /** Waits for the frame that ends a request, `done` or `error`. */
  async end(requestId: string | number): Promise<Record<string, unknown>> {
    const isEnd = (frame: Record<string, unknown>) => frame.request_id === requestId && "type" in frame
    await this.until((frames) => frames.some(isEnd))
    return this.frames.find(isEnd)!
  }

  /** Disconnects without a close frame, as a client that is killed does. */
  vanish(): void {
    this.socket.terminate()
  }
}
