// The floor of a request: `node:http` with the least code that does the same work for the client. It collects and parses
// the JSON body and sends the gateway's own body. No authentication, no validation, no accounts, no engine.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { serveCommands } from "../support/CommandChannel.ts"
import { probe } from "../support/Probe.ts"

let reply = "{}"

const server = createServer((request, response) => {
  const pieces: Array<Buffer> = []
  request.on("data", (piece: Buffer) => pieces.push(piece))
  request.on("end", () => {
    JSON.parse(Buffer.concat(pieces).toString())
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(reply),
    })
    response.end(reply)
  })
})

const port = new Promise<number>((resolve, reject) => {
  server.on("error", reject)
  server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
})

const commands = {
  ...probe,
  port: (): Promise<number> => port,
  /** Sets the body of every later answer. */
  imitate: (body: string): void => {
    reply = body
  },
}

export type BareNodeCommands = typeof commands

serveCommands(commands)
