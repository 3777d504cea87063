// The load client against the raw server, as processes: the client counts all that the server writes, both end with the scope.
import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Child, startChild } from "../../bench/support/Child.ts"
import { Connection } from "../../bench/support/Connection.ts"
import type { LoadClientCommands } from "../../bench/support/loadClientMain.ts"
import type { RawServerCommands } from "../../bench/text/rawServerMain.ts"

const bench = (path: string): URL => new URL(`../../bench/${path}`, import.meta.url)

const imitation = {
  firstEvent: 'data: {"text":"first"}\n\n',
  nextEvent: 'data: {"text":"next\\n\\n"}\n\n',
  reply: { answer: 42 },
  stepMs: 1,
}

const stage = Effect.gen(function* () {
  const raw = yield* startChild<RawServerCommands>({ name: "raw", entry: bench("text/rawServerMain.ts") })
  const client: Child<LoadClientCommands> = yield* startChild<LoadClientCommands>({
    name: "client",
    entry: bench("support/loadClientMain.ts"),
  })
  yield* raw.ask("imitate", imitation)
  return { raw, client, target: { port: yield* raw.ask("port"), key: "" } }
})

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

it.live("counts what is streamed, and every window once", () =>
  Effect.gen(function* () {
    const { client, raw, target } = yield* stage
    const bodies = Array.from({ length: 8 }, () => [{ stream: true }])
    yield* client.ask("start", { target, path: "/", bodies })
    yield* client.ask("begun")
    const first = yield* client.ask("window")
    expect(first.firstEventMs).toHaveLength(8)
    // At least the number of gaps: every arrival but a stream's first is one gap and at least one event.
    expect(first.events).toBeGreaterThanOrEqual(8 + first.gaps.count)
    let second = yield* client.ask("window")
    // A busy machine may give the server no time between two windows.
    while (second.events === 0 && second.failure === undefined) {
      yield* Effect.sleep(20)
      second = yield* client.ask("window")
    }
    expect(second.firstEventMs).toHaveLength(0)
    expect(second.events).toBeGreaterThan(0)
    expect(second.failure).toBeUndefined()
    yield* client.ask("stop")
    expect((yield* raw.ask("cpu")).cpuUs).toBeGreaterThan(0)
  }),
)

it.live("times sequential replies, and keeps the body of a single one", () =>
  Effect.gen(function* () {
    const { client, target } = yield* stage
    const latencies = yield* client.ask("sequence", {
      target,
      path: "/",
      body: {},
      count: 50,
      withinMs: 60_000,
    })
    expect(latencies).toHaveLength(50)
    expect(Math.min(...latencies)).toBeGreaterThan(0)
    const once = yield* client.ask("once", { target, path: "/", body: {} })
    expect([once.status, JSON.parse(once.body)]).toEqual([200, imitation.reply])
  }),
)

it.live("ends its processes with the scope, and names the one that failed", () =>
  Effect.gen(function* () {
    const { client, raw } = yield* Effect.scoped(stage)
    expect([client.pid, raw.pid].filter(isAlive)).toEqual([])
    const failure = yield* Effect.flip(client.ask("window"))
    expect(failure.child).toBe("client")
  }),
)

const listening = (server: Server) =>
  Effect.gen(function* () {
    yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
    server.listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(server, "listening"))
    return { port: (server.address() as AddressInfo).port, key: "" }
  })

it.live("a block of requests to a slow server ends within its time, with at least one", () =>
  Effect.gen(function* () {
    const { client } = yield* stage
    const server = createServer((_, response) => void setTimeout(() => response.end("{}"), 20))
    const target = yield* listening(server)
    const ask = (withinMs: number) =>
      client.ask("sequence", { target, path: "/", body: {}, count: 1_000_000, withinMs })
    expect(yield* ask(0)).toHaveLength(1)
    // A reply takes 20 ms, a timer of Node a little less.
    expect((yield* ask(200)).length).toBeLessThan(15)
  }),
)

it.live("a request on a connection that was closed meanwhile ends at once, without an answer", () =>
  Effect.gen(function* () {
    const server = createServer((_, response) => void response.end("{}"))
    const target = yield* listening(server)
    const connection = yield* Effect.promise(() => Connection.open(target))
    server.closeAllConnections()
    yield* Effect.promise(async () => {
      while (!connection.closed) await sleep(5)
    })
    const sent = new Promise<number>((resolve) => {
      connection.send(Buffer.from("GET / HTTP/1.1\r\n\r\n"), (_events, _atMs, ended) => {
        if (ended) resolve(connection.scanner.status)
      })
    })
    expect(yield* Effect.promise(() => sent)).toBe(0)
  }),
)

it.live("a connection that the server has closed while it was idle is opened again", () =>
  Effect.gen(function* () {
    const { client } = yield* stage
    const closed: Array<Promise<unknown>> = []
    const server = createServer((_, response) => void response.end("{}"))
    // It closes idle connections when it is told to.
    server.keepAliveTimeout = 0
    server.on("connection", (socket) => void closed.push(once(socket, "close")))
    const target = yield* listening(server)
    for (let connections = 1; connections <= 3; connections++) {
      const latencies = yield* client.ask("sequence", {
        target,
        path: "/",
        body: {},
        count: 2,
        withinMs: 60_000,
      })
      expect(latencies).toHaveLength(2)
      expect(closed).toHaveLength(connections)
      server.closeIdleConnections()
      yield* Effect.promise(() => Promise.all(closed))
    }
  }),
)
