// A response of uWebSockets.js that is never sent, on a connection that the process has to itself. It has one use: its `cork` makes
// uWS take calls for corked without corking the response that they are for.
//
// An upgrade needs that. When the callback of a response's own `cork` returns, uWS reads the state of the response: has the client
// asked for `Connection: close`, and is the response complete? But an upgrade inside of the callback has made a shorter WebSocket of
// it in the same memory, and given the end of that memory back, with the state in it. What is written there meanwhile can close
// the new socket, without a close frame: 21 of 2,000 sockets where a garbage collection fell into the callback (measured; none
// of 2,000 with the spare response). uWS has mended it in July 2026 (its commit fe7c01a); the package is older. Without any
// cork uWS prints a warning for each upgrade.
import { randomUUID } from "node:crypto"
import { connect } from "node:net"
import { Effect, type Scope } from "effect"
import type { HttpResponse, Library, ListenSocket } from "./Uws.ts"

/** Calls `write` while uWS takes it for corked. */
export type SpareCork = (write: () => void) => void

/** A connection to the process itself is open at once, or not at all. A guess. */
const openWithinMs = 2_000

/**
 * Without a spare response (a machine without a loopback address) calls are made all the same, and uWS prints its warning.
 */
export const spareCork = (uws: Library): Effect.Effect<SpareCork, never, Scope.Scope> =>
  Effect.gen(function* () {
    // Ends the connection too.
    const app = yield* Effect.acquireRelease(
      Effect.sync(() => uws.App()),
      (made) => Effect.sync(() => void made.close()),
    )
    const path = `/${randomUUID()}`
    let spare: HttpResponse | undefined
    const opened = Effect.callback<void>((resume) => {
      let listening: ListenSocket | undefined
      const done = (): void => {
        clearTimeout(late)
        resume(Effect.void)
      }
      const late = setTimeout(done, openWithinMs)
      app.any("/*", (res, req) => {
        if (req.getUrl() !== path) return void res.close()
        if (listening !== undefined) uws.us_listen_socket_close(listening)
        res.onAborted(() => {
          spare = undefined
        })
        spare = res
        done()
      })
      app.listen("127.0.0.1", 0, (socket) => {
        if (socket === false) return done()
        listening = socket
        const client = connect(uws.us_socket_local_port(socket), "127.0.0.1")
        client.unref()
        client.on("error", done)
        client.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
      })
    })
    yield* opened
    return (write) => {
      if (spare === undefined) write()
      else spare.cork(write)
    }
  })
