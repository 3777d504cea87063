// A TCP relay to a port of this machine that counts its connections, and that can hold back all bytes, as a network that drops every
// packet does.
import net from "node:net"

export interface Relay {
  readonly port: number
  /** Connections so far. */
  readonly opened: () => number
  /** Holds back all bytes, of new connections too. */
  readonly freeze: () => void
  /** Passes them on, with those that were held back. */
  readonly thaw: () => void
  readonly stop: () => void
}

/** Listens on a free port of 127.0.0.1. */
export const startRelay = (port: number): Promise<Relay> =>
  new Promise((resolve, reject) => {
    let opened = 0
    let frozen = false
    const sockets = new Set<net.Socket>()
    const server = net.createServer((near) => {
      opened += 1
      const far = net.connect({ port, host: "127.0.0.1" })
      for (const socket of [near, far]) {
        sockets.add(socket)
        // The close that follows ends the other side.
        socket.on("error", () => {})
        socket.on("close", () => {
          sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
      }
      near.pipe(far).pipe(near)
      if (frozen) for (const socket of [near, far]) socket.pause()
    })
    const freeze = (): void => {
      frozen = true
      for (const socket of sockets) socket.pause()
    }
    const thaw = (): void => {
      frozen = false
      for (const socket of sockets) socket.resume()
    }
    const stop = (): void => {
      server.close()
      for (const socket of sockets) socket.destroy()
    }
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address()
      if (address === null || typeof address === "string") return reject(new Error("no port"))
      resolve({ port: address.port, opened: () => opened, freeze, thaw, stop })
    })
  })
