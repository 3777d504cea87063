// Finds out why an address cannot be bound. uWebSockets.js does not say why; Node's own listener does.
import { createServer } from "node:net"

const words: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EADDRNOTAVAIL: "the address does not belong to this machine",
  EACCES: "the port needs more rights",
}

/** What is wrong, from the error of Node's listener. */
export const listenProblemOf = (host: string, port: number, cause: NodeJS.ErrnoException): string =>
  `cannot listen on ${host}:${port}: ${words[cause.code ?? ""] ?? cause.message}`

/** Binds the address for a moment. Undefined if that works. */
export const listenProblem = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", (cause: NodeJS.ErrnoException) => resolve(listenProblemOf(host, port, cause)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
