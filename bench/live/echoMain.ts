// The floor for a session's frames: uWebSockets.js that answers each binary frame with the same bytes and does nothing
// else. Its commands return its CPU time.
import { App, us_socket_local_port } from "uWebSockets.js"
import { serveCommands } from "../support/CommandChannel.ts"
import { probe } from "../support/Probe.ts"

const app = App().ws("/*", { message: (ws, message) => void ws.send(message, true) })

const port = new Promise<number>((resolve, reject) => {
  app.listen("127.0.0.1", 0, (socket) =>
    socket === false ? reject(new Error("cannot listen")) : resolve(us_socket_local_port(socket)),
  )
})

const commands = { ...probe, port: (): Promise<number> => port }

export type EchoCommands = typeof commands

serveCommands(commands)
