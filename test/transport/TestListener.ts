// Starts a listener with routes for the tests of this folder, on a free port, and stops it afterwards.
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import type { TransportChoice } from "#transport/server/TransportChoice.ts"
import { Listener, type ListenOptions, layer } from "#transport/server/TransportServer.ts"
import { uses } from "../support/groups/Uses.ts"
import { overTls, ownFiles, tlsPorts } from "../support/servers/TestCertificates.ts"

/** Set EDGEWISE_TRANSPORT to run these tests on another transport. */
export const transportUnderTest = (process.env.EDGEWISE_TRANSPORT ?? "auto") as TransportChoice

/** Whether Node's own server serves here, whose parser and pipelining differ. */
export const onNode = transportUnderTest === "node"

export interface TestListener {
  readonly port: number
  readonly listener: Listener["Service"]
  /** Closes the server's scope, as the end of the process does. */
  readonly stop: () => Promise<void>
}

export const startListener = async (
  routes: ReadonlyArray<HttpRouter.Route<unknown, unknown>>,
  options: Partial<ListenOptions> = {},
  extra?: Layer.Layer<never, unknown, unknown>,
  log: Layer.Layer<never> = Layer.empty,
): Promise<TestListener> => {
  uses("process", "a listening server")
  const scope = Scope.makeUnsafe()
  const tls = options.tls ?? (overTls ? await ownFiles() : undefined)
  const served = HttpRouter.serve(
    extra === undefined ? HttpRouter.addAll(routes) : Layer.mergeAll(HttpRouter.addAll(routes), extra),
    {
      disableLogger: true,
      disableListenLog: true,
    },
  ).pipe(
    Layer.provideMerge(layer({ host: "127.0.0.1", port: 0, transport: transportUnderTest, ...options, tls })),
    Layer.provide(log),
  )
  const context = (await Effect.runPromise(
    Layer.buildWithScope(served as Layer.Layer<HttpServer.HttpServer | Listener>, scope),
  )) as Context.Context<HttpServer.HttpServer | Listener>
  const { address } = Context.get(context, HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  if (tls !== undefined) tlsPorts.add(port)
  let stopped: Promise<void> | undefined
  return {
    port,
    listener: Context.get(context, Listener),
    stop: () => {
      tlsPorts.delete(port)
      stopped ??= Effect.runPromise(Scope.close(scope, Exit.void))
      return stopped
    },
  }
}

/** Polls until `condition` holds: for facts of the other side of a socket that no event announces. */
export const eventually = async (condition: () => boolean, what: string): Promise<void> => {
  const until = performance.now() + 60_000
  while (!condition()) {
    if (performance.now() > until) throw new Error(`did not happen: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
