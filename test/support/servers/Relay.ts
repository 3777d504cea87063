// A TCP relay to a port of this machine that counts its connections, and that can do what a network does: hold back all bytes, as one that
// drops every packet; lose some packets, whose bytes come later; and end every connection, as a proxy without a server.
import net from "node:net"

export interface Relay {
  readonly port: number
  /** Connections so far. */
  readonly opened: () => number
  /** Holds back all bytes, of new connections too. */
  readonly freeze: () => void
  /** Passes them on, with those that were held back. */
  readonly thaw: () => void
  /** Ends all connections, and each new one as soon as it has sent something; until `thaw`. */
  readonly refuse: () => void
  /** From now on this part of what is sent comes late, as by TCP's repetition of a lost packet. */
  readonly lose: (part: number) => void
  readonly stop: () => void
}

/** The least time after which Linux sends a packet again, milliseconds. */
const repeatedAfterMs = 200

/** Listens on a free port of 127.0.0.1. */
export const startRelay = (port: number): Promise<Relay> =>
  new Promise((resolve, reject) => {
    let opened = 0
    let state: "open" | "frozen" | "refusing" = "open"
    let lost = 0
    const sockets = new Set<net.Socket>()

    /** What comes later than it should keeps back all that follows it. */
    const forward = (from: net.Socket, to: net.Socket): void => {
      let late: Promise<void> | undefined
      const pass = (chunk: Buffer) => {
        if (to.destroyed || to.write(chunk)) return
        from.pause()
        to.once("drain", () => state === "frozen" || from.resume())
      }
      from.on("data", (chunk: Buffer) => {
        const isLost = Math.random() < lost
        if (!isLost && late === undefined) return pass(chunk)
        const before = late ?? Promise.resolve()
        const waited = isLost ? new Promise((done) => setTimeout(done, repeatedAfterMs)) : undefined
        const mine: Promise<void> = Promise.all([before, waited]).then(() => {
          pass(chunk)
          if (late === mine) late = undefined
        })
        late = mine
      })
      from.on("end", () => void (late ?? Promise.resolve()).then(() => to.end()))
    }

    const server = net.createServer({ allowHalfOpen: true }, (near) => {
      opened += 1
      sockets.add(near)
      // The close that follows ends the other side.
      near.on("error", () => {}).on("close", () => sockets.delete(near))
      if (state === "refusing") return void near.once("data", () => near.end()).once("end", () => near.end())
      const far = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true })
      sockets.add(far)
      far.on("error", () => {})
      for (const socket of [near, far]) {
        socket.on("close", () => {
          sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
      }
      forward(near, far)
      forward(far, near)
      if (state === "frozen") for (const socket of [near, far]) socket.pause()
    })
    const freeze = (): void => {
      state = "frozen"
      for (const socket of sockets) socket.pause()
    }
    const thaw = (): void => {
      state = "open"
      for (const socket of sockets) socket.resume()
    }
    const refuse = (): void => {
      state = "refusing"
      for (const socket of sockets) socket.destroy()
    }
    const stop = (): void => {
      server.close()
      for (const socket of sockets) socket.destroy()
    }
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address()
      if (address === null || typeof address === "string") return reject(new Error("no port"))
      const lose = (part: number): void => {
        lost = part
      }
      resolve({ port: address.port, opened: () => opened, freeze, thaw, refuse, lose, stop })
    })
  })
