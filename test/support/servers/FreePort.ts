// Ports for programs that are told their port before they listen. A port that the system has just given and taken back may be given to
// another process at once, and an outgoing connection may have it. These are below the range from which the system gives ports
// by itself, 32768 and up on Linux, and each is given only once in a run of the tests, so that only another run can be the first to take one.
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { closeSync, openSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

const lowest = 20_000
const highest = 32_000

/** Whether no process of this run was given the port before: the folder of its temporary files has a file for each that was. */
const claim = (port: number): boolean => {
  try {
    closeSync(openSync(join(tmpdir(), `edgewise-port-${port}`), "wx"))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false
    throw error
  }
}

/** A port of 127.0.0.1 on which nothing listens. */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(lowest, highest)
    if (!claim(port)) continue
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
