// A client on the same machine, in a process of its own, that sends faster than the body is read: uWS delivers what it
// has at once, paused or not. It must neither fill this process's memory nor lose, repeat or reorder a byte.
import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ByteSize, Effect, Stream } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { BodyBlocks, blockBytes } from "#http/BodyBlocks.ts"
import { BodySpill } from "#transport/BodySpill.ts"
import { flood } from "../support/clients/FloodClient.ts"
import { runs } from "../support/groups/Runs.ts"
import { eventually, startListener, type TestListener } from "./TestListener.ts"

const bodyBytes = 60 * 1024 * 1024
const bodyBurstBytes = 1024 * 1024
const folder = mkdtempSync(join(tmpdir(), "edgewise-bursts-"))

const servers: Array<TestListener> = []
let go: () => void = () => {}

const start = async (spillFolder: string): Promise<TestListener> => {
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
    yield* Stream.runForEach(request.stream, (chunk) => Effect.sync(() => hash.update(chunk)))
    return HttpServerResponse.text(hash.digest("hex"))
  }).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(2 * bodyBytes)), Effect.orDie)
  const server = await startListener([HttpRouter.route("POST", "/reads", reads)], {
    settings: { bodyBurstBytes, spillFolder },
  })
  servers.push(server)
  return server
}
afterAll(async () => {
  for (const server of servers) await server.stop()
  rmSync(folder, { recursive: true })
})

const answered = async (server: TestListener): Promise<void> => {
  const { answer, child, hash } = flood(server.port, "/reads", bodyBytes)
  await eventually(() => server.listener.counts.bodyBufferedBytes > 256 * 1024, "it comes, and is paused")
  go()
  await eventually(() => answer() !== "", "it is answered")
  child.kill()
  expect(answer()).toContain(`\r\n\r\n${hash()}`)
  expect(server.listener.counts.bodyBufferedBytes).toBe(0)
  expect(readdirSync(folder)).toEqual([])
}

describe("a body that comes in one go", () => {
  let server: TestListener
  beforeAll(async () => {
    server = await start(folder)
  })

  // Whether the client keeps up with uWS depends on the scheduler: of several floods some come at once.
  it.each([1, 2, 3, 4].slice(0, runs(2, 4)))("is read whole and in order, and leaves no file (%d)", () =>
    answered(server),
  )

  it("whose client leaves is forgotten", async () => {
    const { child } = flood(server.port, "/reads", bodyBytes)
    await eventually(() => server.listener.counts.bodyBufferedBytes > 0, "it comes")
    child.kill("SIGKILL")
    go()
    await eventually(() => server.listener.counts.inFlight === 0, "the handler ends")
    expect(server.listener.counts.bodyBufferedBytes).toBe(0)
  })

  it("waits in memory where there is no disk", async () => {
    const file = join(folder, "no-folder")
    writeFileSync(file, "")
    const diskless = await start(join(file, "below"))
    rmSync(file)
    writeFileSync(file, "")
    const { answer, child, hash } = flood(diskless.port, "/reads", bodyBytes)
    await eventually(() => diskless.listener.counts.bodyBufferedBytes > 256 * 1024, "it comes")
    go()
    await eventually(() => answer() !== "", "it is answered")
    child.kill()
    expect(answer()).toContain(hash())
    rmSync(file)
  })
})

describe("BodySpill", () => {
  /** Bytes whose value depends on their position. */
  const numbered = (from: number, length: number): Uint8Array => {
    const bytes = new Uint8Array(length)
    for (let i = 0; i < length; i++) bytes[i] = ((from + i) * 131 + ((from + i) >> 8) * 29) & 0xff
    return bytes
  }

  it.each([
    ["small", 1_000],
    ["whole", blockBytes],
    ["odd", 300_001],
  ])(
    "gives back in order what was put in, %s pieces, 64 MiB in one tick of the event loop",
    async (_, size) => {
      let memoryBytes = 0
      let mostBytes = 0
      const blocks = new BodyBlocks()
      const spill = new BodySpill(folder, blocks, (changeBytes) => {
        memoryBytes += changeBytes
        mostBytes = Math.max(mostBytes, memoryBytes)
      })
      const totalBytes = size === 1_000 ? 4_000_000 : 64 * 1024 * 1024
      const sent = createHash("sha256")
      const got = createHash("sha256")
      let putBytes = 0
      const put = (until: number) => {
        while (putBytes < until) {
          const piece = numbered(putBytes, Math.min(size, totalBytes - putBytes))
          sent.update(piece)
          spill.append(piece)
          putBytes += piece.length
        }
      }
      put(totalBytes / 2)
      let gotBytes = 0
      while (!spill.empty) {
        for (const piece of await spill.next()) {
          got.update(piece)
          gotBytes += piece.length
          blocks.giveBack(piece)
        }
        // More arrives while the first half is read.
        if (gotBytes > totalBytes / 4) put(totalBytes)
      }
      spill.close()
      expect([gotBytes, got.digest("hex")]).toEqual([putBytes, sent.digest("hex")])
      expect(memoryBytes).toBe(0)
      expect(readdirSync(folder)).toEqual([])
    },
  )

  it("closed with a write and a read on their way ends them, and counts nothing twice", async () => {
    for (let round = 0; round < 20; round++) {
      let memoryBytes = 0
      const spill = new BodySpill(folder, new BodyBlocks(), (changeBytes) => {
        memoryBytes += changeBytes
      })
      for (let i = 0; i < 1 + (round % 12); i++) spill.append(new Uint8Array(blockBytes))
      const next = spill.next()
      if (round % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
      spill.close()
      spill.close()
      await next
      await eventually(() => memoryBytes === 0, "all is given back")
    }
  })
})

describe("BodyBlocks", () => {
  it("takes back what it lent, once, and nothing else", () => {
    const blocks = new BodyBlocks()
    const piece = blocks.copy(new Uint8Array([1, 2, 3]))
    blocks.giveBack(piece.subarray(0, 2))
    blocks.giveBack(new Uint8Array(3))
    expect(blocks.freeBlocks).toBe(0)
    blocks.giveBack(piece)
    blocks.giveBack(piece)
    expect(blocks.freeBlocks).toBe(1)
    // The same block again.
    expect(blocks.take(5).buffer).toBe(piece.buffer)
    expect(blocks.freeBlocks).toBe(0)
  })

  it("lengthens a piece within its block", () => {
    const blocks = new BodyBlocks()
    const piece = blocks.copy(new Uint8Array([1, 2]))
    const longer = blocks.append(piece, new Uint8Array([3]))
    expect(longer).toEqual(new Uint8Array([1, 2, 3]))
    expect(blocks.append(piece, new Uint8Array([4]))).toBeUndefined()
    expect(blocks.append(longer!, new Uint8Array(blockBytes - 2))).toBeUndefined()
    blocks.giveBack(piece)
    expect(blocks.freeBlocks).toBe(0)
    blocks.giveBack(longer!)
    expect(blocks.freeBlocks).toBe(1)
  })

  it("keeps no more than a body needs", () => {
    const blocks = new BodyBlocks()
    const pieces = Array.from({ length: 40 }, () => blocks.take(1))
    for (const piece of pieces) blocks.giveBack(piece)
    expect(blocks.freeBlocks * blockBytes).toBeLessThanOrEqual(10 * 1024 * 1024)
  })
})
