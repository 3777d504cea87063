// A router of TCP connections in a process of its own: each new connection goes to the next of the nodes. It reads nothing of what it passes
// on, so that it is the least that can stand before several nodes.
import net from "node:net"
import { serveCommands } from "../support/CommandChannel.ts"

let ports: ReadonlyArray<number> = []
let connections = 0

const server = net.createServer((near) => {
  const far = net.connect({
    host: "127.0.0.1",
    port: ports[connections++ % ports.length] ?? 0,
    noDelay: true,
  })
  near.setNoDelay(true)
  for (const socket of [near, far]) {
    // The close that follows ends the other side.
    socket.on("error", () => {})
    socket.on("close", () => {
      near.destroy()
      far.destroy()
    })
  }
  near.pipe(far).pipe(near)
})
server.listen(0, "127.0.0.1")

const commands = {
  port: (): number => {
    const address = server.address()
    return typeof address === "object" && address !== null ? address.port : 0
  },
  /** Sends the connections that begin from now on to these ports of 127.0.0.1, in turn. */
  nodes: (to: ReadonlyArray<number>): void => {
    ports = to
    connections = 0
  },
}

export type RouterCommands = typeof commands

serveCommands(commands)
