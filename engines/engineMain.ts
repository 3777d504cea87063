// The entry point of an engine process or thread: finds its message port, then serves the adapter that the gateway names.
// Started by actors/engine/EngineProcess; it ends when the gateway does.
import { flushCompileCache } from "node:module"
import { parentPort } from "node:worker_threads"
import { adapters } from "./adapters.ts"
import { type EnginePort, serveEngine } from "./EngineServer.ts"
import type { AnyToEngine } from "./protocol/EngineProtocol.ts"

const threadPort = (port: NonNullable<typeof parentPort>): EnginePort => ({
  send: (message) => port.postMessage(message),
  onMessage: (listener) =>
    port.on("message", (messages: ReadonlyArray<AnyToEngine>) => messages.forEach(listener)),
  exit: () => port.close(),
})

const processPort = (): EnginePort => {
  // An engine without its gateway gets no requests.
  process.on("disconnect", () => process.exit(0))
  // The gateway decides when an engine ends; a Ctrl-C in the terminal reaches the whole process group.
  process.on("SIGINT", () => {})
  process.on("SIGTERM", () => {})
  return {
    send: (message) => {
      // Node writes its compile cache when it exits, and an engine may be killed instead. 0.2 s once, then 5 ms.
      if (message.type === "loaded") flushCompileCache()
      if (process.connected) process.send?.(message)
    },
    onMessage: (listener) =>
      process.on("message", (messages: ReadonlyArray<AnyToEngine>) => messages.forEach(listener)),
    exit: (code) => process.exit(code),
  }
}

const port = parentPort === null ? processPort() : threadPort(parentPort)
serveEngine(port, (name) => adapters[name]?.())
