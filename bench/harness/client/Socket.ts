// A WebSocket of the load client.
import WebSocket from "ws"
import type { Target } from "./Exchange.ts"
import { detailOf, oneLine, RequestFailed } from "./Failures.ts"

/** Bytes of a message that a server may send. */
const mostMessageBytes = 2 ** 20
/** Characters of a refusal that are read. */
const mostRefusal = 2 ** 16

/** Opens the socket. Fails with RequestFailed. Frames may come with the answer to the handshake. */
export const openSocket = (
  url: string,
  target: Target,
  onMessage: (data: WebSocket.RawData, isBinary: boolean) => void,
): Promise<WebSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url, {
      ...target.trust,
      headers: target.headers,
      perMessageDeflate: false,
      maxPayload: mostMessageBytes,
      handshakeTimeout: target.timeoutMs,
    })
    socket.on("message", onMessage)
    socket.once("open", () => resolve(socket))
    socket.once("unexpected-response", (_request, response) => {
      let body = ""
      const refuse = () => {
        socket.terminate()
        const why = detailOf(body) || "the session was refused"
        reject(new RequestFailed(`${response.statusCode ?? 0}`, why))
      }
      response.setEncoding("utf8")
      response.on("data", (text: string) => {
        body += text
        if (body.length > mostRefusal) refuse()
      })
      response.once("close", refuse)
      response.on("error", () => {})
    })
    // Also after the failure: ws emits one for a socket that is ended while it connects.
    socket.on("error", (cause: NodeJS.ErrnoException) =>
      reject(new RequestFailed("unreachable", oneLine(`${target.base}: ${cause.message || cause.code}`))),
    )
  })

export const socketUrl = (target: Target, path: string): string =>
  `${target.base.replace(/^http/, "ws")}${path}`
