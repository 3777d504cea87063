import { randomInt } from "node:crypto"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { describe, expect, it } from "vitest"
import { sinkResponse } from "#http/SinkBody.ts"
import { make } from "#transport/server/TransportServer.ts"
import { headerOf, jsonOf, RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { freePort } from "../../support/servers/FreePort.ts"
import { eventually, startListener } from "../TestListener.ts"

const route = HttpRouter.route

const start = async () => {
  const gate = Deferred.makeUnsafe<void>()
  const server = await startListener([
    route("GET", "/hello", Effect.succeed(HttpServerResponse.text("hello"))),
    route("GET", "/gated", Effect.as(Deferred.await(gate), HttpServerResponse.text("through"))),
    route(
      "GET",
      "/gated-sink",
      Effect.succeed(
        sinkResponse(
          (sink) =>
            Effect.gen(function* () {
              sink.write("one ")
              yield* Deferred.await(gate)
              sink.write("two")
            }),
          { contentType: "text/plain" },
        ),
      ),
    ),
  ])
  return { gate, server }
}

const begin = async (port: number, path: string): Promise<RawConnection> => {
  const connection = await RawConnection.open(port)
  await connection.send(requestBytes("GET", path))
  return connection
}

describe("listening", () => {
  it("fails, and says why, on a port in use and on an address of another machine", async () => {
    const { server } = await start()
    for (const address of [
      { host: "127.0.0.1", port: server.port },
      { host: "192.0.2.1", port: 0 },
    ]) {
      const exit = await Effect.runPromiseExit(Effect.scoped(make(address)))
      expect(Exit.isFailure(exit) && exit.cause.reasons.map((reason) => reason._tag)).toEqual(["Fail"])
    }
    await server.stop()
  })

  it("takes the first of the ports it is given on which nothing listens", async () => {
    const { server } = await start()
    let asked = 0
    const another = await startListener([], {
      port: () => (++asked < 3 ? server.port : randomInt(20_000, 32_000)),
    })
    expect(asked).toBeGreaterThanOrEqual(3)
    expect(another.port).not.toBe(server.port)
    await Promise.all([server.stop(), another.stop()])
  })

  it("frees its port when its scope closes", async () => {
    const port = await freePort()
    const first = await startListener([], { port })
    await first.stop()
    const again = await startListener([], { port })
    expect(again.port).toBe(port)
    await again.stop()
  })

  it("answers 503 before an application is served", async () => {
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { server } = yield* make({ host: "127.0.0.1", port: 0 })
          const port = "port" in server.address ? server.address.port : 0
          const answer = yield* Effect.promise(() => rawRequest(port, requestBytes("GET", "/hello")))
          expect([answer.status, jsonOf(answer)]).toEqual([503, { detail: "Service Unavailable" }])
        }),
      ),
    )
  })
})

describe("draining", () => {
  it("finishes what runs, refuses new connections, and then is idle", async () => {
    const { gate, server } = await start()
    const plain = await begin(server.port, "/gated")
    const sink = await begin(server.port, "/gated-sink")
    await eventually(() => server.listener.counts.inFlight === 2, "both run")
    const drained = Effect.runFork(server.listener.drain)
    await expect(RawConnection.open(server.port)).rejects.toThrow("ECONNREFUSED")
    expect(drained.pollUnsafe()).toBeUndefined()
    await Effect.runPromise(Deferred.succeed(gate, undefined))
    await Effect.runPromise(Fiber.join(drained))
    const answer = await plain.response()
    expect([answer.body.toString(), headerOf(answer, "connection")]).toEqual(["through", "close"])
    expect(await plain.closed).toBeUndefined()
    const streamed = await sink.response()
    expect([streamed.complete, streamed.body.toString()]).toEqual([true, "one two"])
    await server.stop()
    await sink.closed
  })

  it("can go on to accept, so that the application may answer", async () => {
    const { server } = await start()
    await Effect.runPromise(server.listener.windDown({ accept: true }))
    const connection = await begin(server.port, "/hello")
    expect(headerOf(await connection.response(), "connection")).toBe("close")
    await connection.closed
    await Effect.runPromise(server.listener.idle)
    await server.stop()
  })
})

describe("stopping", () => {
  it("answers 503 where nothing was said yet, and breaks off what had begun", async () => {
    const { server } = await start()
    const plain = await begin(server.port, "/gated")
    const sink = await begin(server.port, "/gated-sink")
    await sink.bytes(20)
    await eventually(() => server.listener.counts.inFlight === 2, "both run")
    await server.stop()
    const answer = await plain.response()
    expect([answer.status, jsonOf(answer), headerOf(answer, "connection")]).toEqual([
      503,
      { detail: "Service Unavailable" },
      "close",
    ])
    await plain.closed
    const streamed = await sink.response()
    expect([streamed.status, streamed.complete, streamed.body.toString()]).toEqual([200, false, "one "])
    const { inFlight, connections, replyBufferedBytes } = server.listener.counts
    expect([inFlight, connections, replyBufferedBytes]).toEqual([0, 0, 0])
  })

  it("closes idle connections", async () => {
    const { server } = await start()
    const idle = await begin(server.port, "/hello")
    await idle.response()
    await server.stop()
    await idle.closed
  })
})
