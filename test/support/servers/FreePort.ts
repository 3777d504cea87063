// Ports for programs that are told their port before they listen. A port that the system has just given and taken back may be given to
// another process at once, and an outgoing connection may have it. These are below the range from which the system gives ports
// by itself, 32768 and up on Linux, so that only another user of this file can be the first to take one.
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:net"

const lowest = 20_000
const highest = 32_000

/** A port of 127.0.0.1 on which nothing listens. */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(lowest, highest)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true))
    })
    if (!isFree) continue
    server.close()
    await once(server, "close")
    return port
  }
}
