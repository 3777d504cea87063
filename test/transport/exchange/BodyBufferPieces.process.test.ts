// Bodies that come in very many pieces: bounded in bytes, they would still keep the event loop busy for seconds and
// hold a hundred times their size.
import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { PieceBudget, requestPieces } from "#domain/queues/PieceBudget.ts"
import { SmallPieces } from "#domain/queues/SmallPieces.ts"
import { chunkedBytes, RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const Request = HttpServerRequest.HttpServerRequest

/** Sends `count` chunks of one byte from a process of its own, as fast as the kernel takes them. */
const program = `
const net = require("node:net")
const [port, path, count] = process.argv.slice(2)
const socket = net.connect(Number(port), "127.0.0.1", () => {
  socket.write("POST " + path + " HTTP/1.1\\r\\nhost: x\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n")
  socket.write(Buffer.from("1\\r\\na\\r\\n".repeat(Number(count)) + "0\\r\\n\\r\\n"))
})
let answer = ""
socket.on("data", (data) => (answer += data))
socket.on("error", () => {})
socket.on("close", () => process.send(answer, () => process.exit()))
`

const folder = mkdtempSync(join(tmpdir(), "edgewise-pieces-"))
let server: TestListener
beforeAll(async () => {
  writeFileSync(join(folder, "client.cjs"), program)
  const whole = Effect.gen(function* () {
    return HttpServerResponse.text(String((yield* (yield* Request).text).length))
  })
  const streamed = Effect.gen(function* () {
    const { stream } = yield* Request
    const pieces = yield* Stream.runCollect(stream)
    return HttpServerResponse.text(String(pieces.length))
  })
  const unread = Effect.never
  server = await startListener([
    HttpRouter.route("POST", "/whole", whole),
    HttpRouter.route("POST", "/streamed", streamed),
    HttpRouter.route("POST", "/unread", unread),
  ])
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const attack = async (path: string): Promise<string> => {
  const child = fork(join(folder, "client.cjs"), [String(server.port), path, "300000"], { execArgv: [] })
  const [answer] = await once(child, "message")
  return answer as string
}

describe("a body of 300,000 chunks of one byte", () => {
  it.each(["/whole", "/streamed", "/unread"])(
    "is cut early, whichever handler reads it: %s",
    async (path) => {
      const before = server.listener.counts.bodiesScattered
      // The refusal, unless the end of the connection overtook it.
      expect(await attack(path)).toMatch(
        /^$|^HTTP\/1\.1 400 [\s\S]*"body: comes in \d+ pieces of less than 64 bytes/,
      )
      expect(server.listener.counts.bodiesScattered - before).toBe(1)
      await eventually(() => server.listener.counts.inFlight === 0, "its handler is interrupted")
      expect(server.listener.counts.bodyBufferedBytes).toBe(0)
    },
  )

  it("and one of 4,000 is read", async () => {
    const body = chunkedBytes(Array.from({ length: 4_000 }, () => "a"))
    const head = requestBytes("POST", "/whole", { "transfer-encoding": "chunked" })
    const answer = await rawRequest(server.port, Buffer.concat([head, body]))
    expect([answer.status, answer.body.toString()]).toEqual([200, "4000"])
  })

  it("reaches a handler in few pieces", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/streamed", { "transfer-encoding": "chunked" }))
    await eventually(() => server.listener.counts.inFlight === 1, "the handler waits")
    await connection.send(chunkedBytes(Array.from({ length: 4_000 }, () => "a")))
    const answer = await connection.response()
    expect(Number(answer.body.toString())).toBeLessThan(40)
    connection.destroy()
  })
})

describe("PieceBudget", () => {
  /** How many pieces of one size it takes within one tick, of at most `most`. */
  const taken = (sizeBytes: number, most: number, ticks: boolean): number => {
    const budget = new PieceBudget(requestPieces)
    for (let count = 0; count < most; count++) {
      if (budget.take(sizeBytes, ticks ? count : 0) !== undefined) return count
    }
    return most
  }

  it("takes any number of pieces of a fair size, and few small ones", () => {
    expect(taken(0, 20_000, true)).toBe(4_096)
    expect(taken(63, 20_000, true)).toBe(4_096)
    expect(taken(64, 20_000, true)).toBe(20_000)
    expect(taken(1_024, 20_000, false)).toBe(20_000)
    expect(taken(64, 20_000, false)).toBe(8_738)
  })

  it("takes 4,096 small pieces of a body that is large otherwise", () => {
    const budget = new PieceBudget(requestPieces)
    expect(budget.take(8_000_000, 0)).toBeUndefined()
    for (let tick = 1; tick < 100_000; tick++) expect(budget.take(1, tick)).toBeUndefined()
  })
})

describe("SmallPieces", () => {
  it("gives back what it was given, and never changes what it gave", () => {
    const step = fc.oneof(fc.uint8Array({ maxLength: 9_000 }), fc.constant("take" as const))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pieces = new SmallPieces()
        const given: Array<Uint8Array> = []
        const taken: Array<Uint8Array | undefined> = []
        for (const one of steps) {
          if (one === "take") taken.push(pieces.take())
          else {
            given.push(one.slice())
            taken.push(pieces.add(one))
            one.fill(0)
          }
        }
        taken.push(pieces.take())
        const all = Buffer.concat(taken.filter((piece) => piece !== undefined))
        expect(all.equals(Buffer.concat(given))).toBe(true)
      }),
      { numRuns: 100 },
    )
  })
})
