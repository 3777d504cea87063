// Finds out why an address cannot be bound. uWebSockets.js does not say why; Node's own listener does.
import { createServer } from "node:net"

const words: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EADDRNOTAVAIL: "the address does not belong to this machine",
  EACCES: "the port needs more rights",
}

/** Binds the address for a moment. Undefined if that works. */
export const listenProblem = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", (cause: NodeJS.ErrnoException) =>
      resolve(`cannot listen on ${host}:${port}: ${words[cause.code ?? ""] ?? cause.message}`),
    )
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
