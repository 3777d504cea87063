// What a request asks of a shared database has the deadline of requests, whichever handler asks: no list of handlers is to be kept.
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { expect, it } from "vitest"
import { serveRoutes } from "#cli/roles/NodeLayer.ts"
import { StatementDeadline } from "#store/sql/StorePresence.ts"
import { layer } from "#transport/server/TransportServer.ts"
import { uses } from "../../support/groups/Uses.ts"

it("is two seconds in every handler of a listener", async () => {
  uses("process", "a listening server")
  const scope = Scope.makeUnsafe()
  const answer = Effect.map(StatementDeadline, (ms) => HttpServerResponse.text(String(ms)))
  const served = serveRoutes(HttpRouter.addAll([HttpRouter.route("GET", "/deadline", answer)])).pipe(
    Layer.provideMerge(layer({ host: "127.0.0.1", port: 0 })),
  )
  const services = await Effect.runPromise(Layer.buildWithScope(served, scope))
  const { address } = Context.get(services, HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  expect(await (await fetch(`http://127.0.0.1:${port}/deadline`)).text()).toBe("2000")
  await Effect.runPromise(Scope.close(scope, Exit.void))
})
