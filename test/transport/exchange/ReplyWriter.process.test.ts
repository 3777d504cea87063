import { Deferred, Effect, Exit, Stream } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { ClientAbort } from "effect/http/HttpServerError"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Sink, sinkResponse } from "#http/SinkBody.ts"
import { headerOf, jsonOf, RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const route = HttpRouter.route
const sinkRoute = (path: `/${string}`, body: (sink: Sink) => Effect.Effect<void, unknown>) =>
  route("GET", path, Effect.succeed(sinkResponse(body, { contentType: "text/event-stream" })))

/** What happened to the handler of the last request that ran until interrupted. */
let ended = Deferred.makeUnsafe<Exit.Exit<unknown, unknown>>()
const watched = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.onExit(effect, (exit) => Deferred.succeed(ended, exit))
const lastExit = (): Promise<Exit.Exit<unknown, unknown>> => Effect.runPromise(Deferred.await(ended))
const expectClientAbort = (exit: Exit.Exit<unknown, unknown>): void => {
  const reasons = Exit.isFailure(exit) ? exit.cause.reasons : []
  expect(reasons.map((reason) => reason._tag)).toEqual(["Interrupt"])
  expect(reasons.every((reason) => reason.annotations.has(ClientAbort.key))).toBe(true)
}

/** Writes until `write` returns false, then as soon as the socket drains. */
const flood = (sink: Sink, chunk: Uint8Array): Effect.Effect<never> =>
  Effect.callback(() => {
    const fill = (): void => {
      while (!sink.closed() && sink.write(chunk));
    }
    sink.onDrain(fill)
    fill()
  })

const slowReaderRoutes = [
  sinkRoute("/flood", (sink) => watched(flood(sink, Buffer.alloc(8_000, 97)))),
  // A clock: one small frame every millisecond, 100 of them.
  sinkRoute("/ticks", (sink) =>
    Effect.gen(function* () {
      for (let i = 0; i < 100; i++) {
        sink.write(`${i}\n`)
        yield* Effect.sleep("1 millis")
      }
    }),
  ),
]

const megabytes40 = 40_000_000
const largeRoutes = [
  route(
    "GET",
    "/stream-40mb",
    Effect.succeed(
      HttpServerResponse.stream(
        Stream.range(1, megabytes40 / 400_000).pipe(
          Stream.mapArray((ns) => ns.map(() => new Uint8Array(400_000)) as never),
        ) as Stream.Stream<Uint8Array>,
      ),
    ),
  ),
  route("GET", "/bytes-40mb", Effect.succeed(HttpServerResponse.uint8Array(new Uint8Array(megabytes40)))),
]

let server: TestListener
beforeAll(async () => {
  server = await startListener([
    sinkRoute("/sink", (sink) =>
      Effect.gen(function* () {
        sink.write("data: 1\n\n")
        yield* Effect.sleep("2 millis")
        sink.write("data: 2\n\n")
        sink.write(new Uint8Array([51]))
      }),
    ),
    sinkRoute("/sink-now", (sink) => Effect.sync(() => sink.write("at once"))),
    sinkRoute("/sink-fails", (sink) =>
      Effect.gen(function* () {
        sink.write("half")
        yield* Effect.sleep("2 millis")
        return yield* Effect.fail("broken")
      }),
    ),
    sinkRoute("/sink-dies-now", (sink) =>
      Effect.andThen(
        Effect.sync(() => sink.write("half")),
        Effect.die("broken"),
      ),
    ),
    sinkRoute("/sink-big", (sink) => Effect.sync(() => sink.write("é".repeat(100_000)))),
    sinkRoute("/sink-too-much", (sink) =>
      watched(
        Effect.suspend(() => {
          sink.write(new Uint8Array(30_000_000))
          return sink.closed() ? Effect.never : Effect.void
        }),
      ),
    ),
    sinkRoute("/sink-waits", () => watched(Effect.never)),
    ...slowReaderRoutes,
    // Ignores the result of `write`.
    sinkRoute("/deaf", (sink) =>
      watched(
        Effect.gen(function* () {
          for (;;) {
            for (let i = 0; i < 50; i++) sink.write(Buffer.alloc(8_000, 97))
            yield* Effect.sleep("1 millis")
          }
        }),
      ),
    ),
    route(
      "GET",
      "/stream",
      Effect.succeed(
        HttpServerResponse.stream(
          Stream.range(0, 999).pipe(Stream.map((i) => Buffer.from(`${String(i).padStart(4, "0")}\n`))),
        ),
      ),
    ),
    route(
      "GET",
      "/stream-fails",
      Effect.succeed(
        HttpServerResponse.stream(Stream.concat(Stream.make(Buffer.from("half")), Stream.fail("broken"))),
      ),
    ),
    ...largeRoutes,
    route("GET", "/text-5mb", Effect.succeed(HttpServerResponse.text("é".repeat(2_500_000)))),
    route("GET", "/wait", watched(Effect.never)),
  ])
})
afterAll(() => server.stop())

const counts = () => server.listener.counts
const quiet = () =>
  eventually(
    () => counts().inFlight === 0 && counts().replyBufferedBytes === 0 && counts().connections === 0,
    `nothing in flight, buffered or open: ${JSON.stringify(counts())}`,
  )
const reset = (): void => {
  ended = Deferred.makeUnsafe()
}

describe("sink bodies", () => {
  it("reach the client as they are written, and end with success", async () => {
    const answer = await rawRequest(server.port, requestBytes("GET", "/sink"))
    expect([answer.complete, answer.body.toString()]).toEqual([true, "data: 1\n\ndata: 2\n\n3"])
    expect(headerOf(answer, "content-type")).toBe("text/event-stream")
    expect(answer.chunkSizes[0]).toBe(9)
    const now = await rawRequest(server.port, requestBytes("GET", "/sink-now"))
    expect([now.complete, now.body.toString()]).toEqual([true, "at once"])
    const big = await rawRequest(server.port, requestBytes("GET", "/sink-big"))
    expect([big.complete, big.body.toString() === "é".repeat(100_000)]).toEqual([true, true])
  })

  it("that fail close the connection without an end", async () => {
    for (const path of ["/sink-fails", "/sink-dies-now", "/stream-fails"]) {
      const before = counts().brokenReplies
      const connection = await RawConnection.open(server.port)
      await connection.send(requestBytes("GET", path))
      const answer = await connection.response()
      await connection.closed
      expect([path, answer.status, answer.complete, answer.body.toString()]).toEqual([
        path,
        200,
        false,
        "half",
      ])
      expect(counts().brokenReplies - before).toBe(1)
    }
    await quiet()
  })

  it("do not run for HEAD", async () => {
    const answer = await rawRequest(server.port, requestBytes("HEAD", "/sink-waits"), { toHead: true })
    expect([answer.status, counts().inFlight]).toEqual([200, 0])
  })
})

describe("streams and bytes", () => {
  it("arrive whole and in order", async () => {
    const answer = await rawRequest(server.port, requestBytes("GET", "/stream"))
    const lines = answer.body.toString().trim().split("\n")
    expect([answer.complete, lines.length, lines.every((line, i) => Number(line) === i)]).toEqual([
      true,
      1000,
      true,
    ])
    const text = await rawRequest(server.port, requestBytes("GET", "/text-5mb"))
    expect([headerOf(text, "content-length"), text.body.equals(Buffer.from("é".repeat(2_500_000)))]).toEqual([
      "5000000",
      true,
    ])
  })

  it("wait for a reader that pauses, and keep next to nothing meanwhile", async () => {
    for (const path of ["/stream-40mb", "/bytes-40mb"]) {
      const connection = await RawConnection.open(server.port)
      connection.socket.removeAllListeners("data")
      let received = 0
      let mostBuffered = 0
      const done = new Promise<void>((resolve) => {
        connection.socket.on("data", (data) => {
          const before = Math.floor(received / 2_000_000)
          received += data.length
          mostBuffered = Math.max(mostBuffered, counts().replyBufferedBytes)
          if (received >= megabytes40) resolve()
          else if (Math.floor(received / 2_000_000) > before) {
            connection.socket.pause()
            setTimeout(() => connection.socket.resume(), 5)
          }
        })
      })
      await connection.send(requestBytes("GET", path))
      await done
      connection.destroy()
      expect(mostBuffered).toBeLessThanOrEqual(256 * 1024)
    }
    await quiet()
  })
})

describe("a client that leaves", () => {
  it("while its handler waits, writes, or is held up, interrupts the handler and frees everything", async () => {
    for (const path of ["/wait", "/sink-waits", "/flood"]) {
      reset()
      const before = counts().aborts
      const connection = await RawConnection.open(server.port)
      connection.socket.pause()
      await connection.send(requestBytes("GET", path))
      await eventually(() => counts().inFlight === 1, "the request runs")
      if (path === "/flood") await eventually(() => counts().replyBufferedBytes > 0, "the reader is held up")
      connection.destroy()
      expectClientAbort(await lastExit())
      await quiet()
      expect([path, counts().aborts - before]).toEqual([path, 1])
    }
  })
})

describe("a reader that takes nothing", () => {
  it("is cut after the stall time, whatever kind of body waits", async () => {
    // A listener of its own: on a busy machine this process may pause for that long while other tests are read from.
    const hasty = await startListener([...slowReaderRoutes, ...largeRoutes], {
      settings: { stallTimeoutMs: 400 },
    })
    const { counts } = hasty.listener
    reset()
    const connections = await Promise.all(
      ["/flood", "/stream-40mb", "/bytes-40mb"].map(async (path) => {
        const connection = await RawConnection.open(hasty.port)
        connection.socket.pause()
        await connection.send(requestBytes("GET", path))
        return connection
      }),
    )
    await eventually(() => counts.slowReadersCut === connections.length, "all readers are cut")
    expectClientAbort(await lastExit())
    for (const connection of connections) {
      connection.socket.resume()
      await connection.closed
    }
    await eventually(() => counts.inFlight === 0 && counts.replyBufferedBytes === 0, "nothing is left")
    await hasty.stop()
  })

  it("is cut at once when more than 256 KB wait for it, and never has more", async () => {
    reset()
    const before = counts()
    const cutBefore = before.slowReadersCut
    const connection = await RawConnection.open(server.port)
    connection.socket.pause()
    await connection.send(requestBytes("GET", "/deaf"))
    expectClientAbort(await lastExit())
    expect(counts().slowReadersCut - cutBefore).toBe(1)
    connection.destroy()
    await quiet()
  })

  it("is cut within the very callback of the request when all is written at once", async () => {
    reset()
    const connection = await RawConnection.open(server.port)
    connection.socket.pause()
    await connection.send(requestBytes("GET", "/sink-too-much"))
    expectClientAbort(await lastExit())
    connection.destroy()
    await quiet()
  })

  it("costs no work for the others: 200 of them against none", inLong, async () => {
    const patient = await startListener(slowReaderRoutes)
    const all = () => patient.listener.counts
    /** Of this process, microseconds. Others on the machine make it longer only a little. */
    const processorTime = async (): Promise<number> => {
      const start = process.cpuUsage()
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => rawRequest(patient.port, requestBytes("GET", "/ticks"))),
      )
      expect(answers.every((answer) => answer.complete && answer.body.toString().endsWith("99\n"))).toBe(true)
      const { system, user } = process.cpuUsage(start)
      return system + user
    }
    /** The best of five. */
    const best = async (): Promise<number> => {
      const times: Array<number> = []
      for (let i = 0; i < 5; i++) times.push(await processorTime())
      return Math.min(...times)
    }
    await processorTime()
    const alone = await best()
    const stalled = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const connection = await RawConnection.open(patient.port)
        connection.socket.pause()
        await connection.send(requestBytes("GET", "/flood"))
        return connection
      }),
    )
    // Each holds back at least the piece that the kernel refused.
    await eventually(
      () => all().inFlight === 200 && all().replyBufferedBytes >= 200 * 8_000,
      "all are held up",
    )
    const held = all().replyBufferedBytes
    const beside = await best()
    expect(held).toBeLessThanOrEqual(200 * 256 * 1024)
    for (const connection of stalled) connection.destroy()
    await eventually(() => all().inFlight === 0 && all().replyBufferedBytes === 0, "all are gone")
    await patient.stop()
    // They are equal but for noise; a transport that polls stalled readers is far off.
    expect(beside / alone).toBeLessThan(3)
  })
})

describe("errors", () => {
  it("of Effect's own modules get a body", async () => {
    const answer = await rawRequest(server.port, requestBytes("GET", "/nowhere"))
    expect([answer.status, headerOf(answer, "content-type"), jsonOf(answer)]).toEqual([
      404,
      "application/json",
      { detail: "Not Found" },
    ])
  })
})
