// A WebSocket of the load client.
import WebSocket from "ws"
import type { Target } from "./Exchange.ts"
import { oneLine, RequestFailed } from "./Failures.ts"

/** Bytes of a message that a server may send. */
const mostMessageBytes = 2 ** 20

/** Opens the socket. Fails with RequestFailed. Frames may come with the answer to the handshake. */
export const openSocket = (
  url: string,
  target: Target,
  onMessage: (data: WebSocket.RawData, isBinary: boolean) => void,
): Promise<WebSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url, {
      headers: target.headers,
      perMessageDeflate: false,
      maxPayload: mostMessageBytes,
      handshakeTimeout: target.timeoutMs,
    })
    socket.on("message", onMessage)
    socket.once("open", () => resolve(socket))
    socket.once("unexpected-response", (_request, response) => {
      socket.terminate()
      reject(
        new RequestFailed(
          `${response.statusCode ?? 0}`,
          `the session was refused with ${response.statusCode}`,
        ),
      )
    })
    // Also after the failure: ws emits one for a socket that is ended while it connects.
    socket.on("error", (cause: NodeJS.ErrnoException) =>
      reject(new RequestFailed("unreachable", oneLine(`${target.base}: ${cause.message || cause.code}`))),
    )
  })

export const socketUrl = (target: Target, path: string): string =>
  `${target.base.replace(/^http/, "ws")}${path}`
