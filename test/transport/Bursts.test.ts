// A client on the same machine, in a process of its own, that sends faster than anybody reads: uWS delivers what it has
// in one go, paused or not. It must neither fill this process's memory nor lose, repeat or reorder a byte.
import { fork } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ByteSize, Effect, Stream } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually, startListener, type TestListener } from "./TestListener.ts"

const bodyBytes = 60 * 1024 * 1024
const bodyBurstBytes = 1024 * 1024
/** uWS's receive buffer: what one delivery may hold. */
const deliveryBytes = 512 * 1024

/** Numbers the body's 64-byte blocks, so that no two are alike, and sends it as fast as the kernel takes it. */
const client = `
const net = require("node:net"), crypto = require("node:crypto")
const [port, path, total] = process.argv.slice(2)
const body = Buffer.alloc(Number(total))
for (let at = 0; at < body.length; at += 64) body.writeUInt32LE(at, at)
process.send({ hash: crypto.createHash("sha256").update(body).digest("hex") })
const socket = net.connect(Number(port), "127.0.0.1", () => {
  socket.write("POST " + path + " HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: " + total + "\\r\\n\\r\\n")
  socket.write(body)
})
socket.on("data", (data) => process.send({ answer: data.toString() }))
socket.on("error", () => {})
`

let server: TestListener
const folder = mkdtempSync(join(tmpdir(), "edgewise-bursts-"))
const program = join(folder, "client.cjs")
let mostBytes = 0
let go: () => void = () => {}

beforeAll(async () => {
  writeFileSync(program, client)
  const reads = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const hash = createHash("sha256")
    // The client has time to send before the first byte is read.
    yield* Effect.promise(
      () =>
        new Promise<void>((resolve) => {
          go = resolve
        }),
    )
    yield* Stream.runForEachArray(request.stream, (chunks) =>
      Effect.sync(() => {
        let togetherBytes = server.listener.counts.bodyBufferedBytes
        for (const chunk of chunks) {
          togetherBytes += chunk.length
          hash.update(chunk)
        }
        mostBytes = Math.max(mostBytes, togetherBytes)
      }),
    )
    return HttpServerResponse.text(hash.digest("hex"))
  }).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(2 * bodyBytes)), Effect.orDie)
  server = await startListener([HttpRouter.route("POST", "/reads", reads)], {
    settings: { bodyBurstBytes },
  })
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Said {
  readonly hash?: string
  readonly answer?: string
}

const flood = () => {
  const child = fork(program, [String(server.port), "/reads", String(bodyBytes)], { execArgv: [] })
  const said: Array<Said> = []
  child.on("message", (message) => said.push(message as Said))
  return { child, said }
}

describe("a body that comes in one go", () => {
  // Whether the client keeps up with uWS is the scheduler's matter: of several floods some come in one go.
  it.each([1, 2, 3, 4, 5])("is read whole and in order, in bounded memory (%d)", async () => {
    const { child, said } = flood()
    await eventually(
      () => server.listener.counts.bodyBufferedBytes > 256 * 1024,
      "the body comes, and is paused",
    )
    go()
    await eventually(() => said.some(({ answer }) => answer !== undefined), "it is answered")
    child.kill()
    const { hash } = said.find((each) => each.hash !== undefined)!
    expect(said.find(({ answer }) => answer !== undefined)?.answer).toContain(`\r\n\r\n${hash}`)
    expect(mostBytes).toBeGreaterThan(0)
    expect(mostBytes).toBeLessThanOrEqual(bodyBurstBytes + deliveryBytes)
    expect(server.listener.counts.bodyBufferedBytes).toBe(0)
  })

  it("whose client leaves is forgotten", async () => {
    const { child } = flood()
    await eventually(() => server.listener.counts.bodyBufferedBytes > 0, "the body comes")
    child.kill("SIGKILL")
    go()
    await eventually(() => server.listener.counts.inFlight === 0, "the handler ends")
    expect(server.listener.counts.bodyBufferedBytes).toBe(0)
  })
})
