// An HTTP server of 127.0.0.1 on a port that the system chooses.
import { createServer, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"

export interface LoopbackServer {
  readonly server: Server
  readonly url: string
  /** Resolves when it is closed. Its connections are cut at once. */
  readonly stop: () => Promise<void>
}

export const startLoopbackServer = async (listener: RequestListener): Promise<LoopbackServer> => {
  const server = createServer(listener)
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve)
  })
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
