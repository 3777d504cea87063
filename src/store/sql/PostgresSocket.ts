// The socket of one connection to Postgres, for the `postgres` package. By itself the package opens another one as often as the server closes
// it before the connection is ready: without a pause, without an error and without an end, e.g. behind a proxy that accepts and has no server.
import net from "node:net"

interface Place {
  readonly host: ReadonlyArray<string>
  readonly port: ReadonlyArray<number>
}

interface OneSocket {
  /** For the package's option `socket`. Connects once; what is opened after that fails. */
  readonly open: (place: Place) => Promise<net.Socket>
  /** Ends the socket, also while it is being connected. */
  readonly destroy: () => void
}

export const oneSocket = (): OneSocket => {
  let socket: net.Socket | undefined
  return {
    open: ({ host: [host = ""], port: [port = 0] }) =>
      new Promise((resolve, reject) => {
        if (socket !== undefined)
          return reject(new Error("the server closed the connection before it was ready"))
        const opened = net.connect({ host, port })
        socket = opened
        const onClose = () => reject(new Error("the connection was given up"))
        opened.once("error", reject).once("close", onClose)
        opened.once("connect", () => {
          opened.off("error", reject).off("close", onClose)
          // The package takes the name for TLS from the socket.
          resolve(Object.assign(opened, { host, port }))
        })
      }),
    destroy: () => void socket?.destroy(),
  }
}
