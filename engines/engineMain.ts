// The door of an engine process or thread: finds its message port, then serves the adapter that the host names.
// Started by actors/engine/EngineProcess; when its host goes away it ends.
import { flushCompileCache } from "node:module"
import { parentPort } from "node:worker_threads"
import { adapters } from "./adapters.ts"
import { type EnginePort, serveEngine } from "./EngineServer.ts"
import type { ToEngine } from "./protocol/EngineProtocol.ts"

const threadPort = (port: NonNullable<typeof parentPort>): EnginePort => ({
  send: (message) => port.postMessage(message),
  onMessage: (listener) =>
    port.on("message", (messages: ReadonlyArray<ToEngine>) => messages.forEach(listener)),
  exit: () => port.close(),
})

const processPort = (): EnginePort => {
  // An engine without its gateway has nobody to serve.
  process.on("disconnect", () => process.exit(0))
  // The gateway decides when an engine ends; a Ctrl-C in the terminal reaches the whole process group.
  process.on("SIGINT", () => {})
  process.on("SIGTERM", () => {})
  return {
    send: (message) => {
      // For the next one: Node keeps what it has compiled when it exits, and many an engine is killed. 0.2 s once, then 5 ms.
      if (message.t === "loaded") flushCompileCache()
      if (process.connected) process.send?.(message)
    },
    onMessage: (listener) =>
      process.on("message", (messages) => (messages as ReadonlyArray<ToEngine>).forEach(listener)),
    exit: (code) => process.exit(code),
  }
}

const port = parentPort === null ? processPort() : threadPort(parentPort)
serveEngine(port, (name) => adapters[name]?.())
