// Replies with an asset: the requested content coding, its own ETag, 304 when the client has it; and that it is made once.
import { gunzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { HttpServerRequest } from "effect/http"
import fc from "fast-check"
import { type Asset, asksAgain, assetResponse, names, onceAsked, packed, takesGzip } from "#api/http/Asset.ts"

const bytesOf = (text: string) => new TextEncoder().encode(text)
const asset: Asset = { identity: bytesOf("plain"), gzip: bytesOf("small"), hash: "h" }
const ask = (headers: Readonly<Record<string, string>>) =>
  assetResponse(
    HttpServerRequest.fromWeb(new Request("http://localhost/", { headers: { ...headers } })),
    asset,
    { contentType: "text/plain", cacheControl: asksAgain, headers: { "x-own": "1" } },
  )

describe("Accept-Encoding", () => {
  it.each([
    [undefined, false],
    ["", false],
    ["gzip", true],
    ["GZip", true],
    ["x-gzip", true],
    ["br, gzip, deflate", true],
    ["br", false],
    ["*", true],
    ["*;q=0", false],
    ["*, gzip;q=0", false],
    ["gzip;q=0", false],
    ["gzip; q=0.000", false],
    ["gzip;q=0.001", true],
    ["identity", false],
    ["identity, gzip", true],
    ["identity;q=0.5, gzip;q=0.4", false],
    ["identity;q=0, gzip;q=0.1", true],
    ["gzip;q=much", false],
    ["gzipped", false],
    [",,;;gzip", false],
  ])("%j: gzip %j", (header, gzip) => {
    expect(takesGzip(header)).toBe(gzip)
  })

  it("may be any text", () => {
    fc.assert(fc.property(fc.string(), (header) => typeof takesGzip(header) === "boolean"))
  })
})

describe("If-None-Match", () => {
  it.each([
    [undefined, false],
    ["", false],
    ['"h"', true],
    ['W/"h"', true],
    ['"a", "h"', true],
    ['"a","h-gzip"', false],
    ["h", false],
    ["*", true],
  ])("%j has the tag: %j", (header, named) => {
    expect(names(header, '"h"')).toBe(named)
  })
})

describe("the answer", () => {
  it("has the bytes, the tag and the coding that belong together", () => {
    const plain = ask({})
    expect(plain.body).toMatchObject({ body: asset.identity })
    expect(plain.headers).toMatchObject({ etag: '"h"', vary: "accept-encoding", "x-own": "1" })
    expect(plain.headers).not.toHaveProperty("content-encoding")
    const zipped = ask({ "accept-encoding": "gzip" })
    expect(zipped.body).toMatchObject({ body: asset.gzip })
    expect(zipped.headers).toMatchObject({
      etag: '"h-gzip"',
      "content-encoding": "gzip",
      vary: "accept-encoding",
      "content-type": "text/plain",
      "cache-control": "no-cache",
    })
  })

  it("is 304 for a client that has this coding, and 200 for one that has the other", () => {
    const known = ask({ "accept-encoding": "gzip", "if-none-match": '"h-gzip"' })
    expect([known.status, known.body._tag]).toEqual([304, "Empty"])
    expect(known.headers).toMatchObject({
      etag: '"h-gzip"',
      vary: "accept-encoding",
      "cache-control": "no-cache",
    })
    expect(ask({ "accept-encoding": "gzip", "if-none-match": '"h"' }).status).toBe(200)
    expect(ask({ "if-none-match": '"h"' }).status).toBe(304)
  })
})

describe("packed", () => {
  it("gives back what went in, in a buffer of its own, and another hash for another content", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array(), fc.uint8Array(), async (one, other) => {
        const [a, b] = await Promise.all([one, other].map((bytes) => Effect.runPromise(packed(bytes))))
        expect(new Uint8Array(gunzipSync(a!.gzip))).toEqual(one)
        expect(a!.gzip.byteLength).toBe(a!.gzip.buffer.byteLength)
        expect(a!.hash).toMatch(/^[\w-]{22}$/)
        expect(a!.hash === b!.hash).toBe(Buffer.from(one).equals(Buffer.from(other)))
      }),
      { numRuns: 50 },
    ))
})

describe("onceAsked", () => {
  it.effect("makes nothing before, one for all requests, and again after a failure", () =>
    Effect.gen(function* () {
      let begun = 0
      const failing = yield* Deferred.make<number>()
      const gates = [failing, yield* Deferred.make<number>()]
      const shared = yield* onceAsked(Effect.suspend(() => Deferred.await(gates[begun++]!)))
      expect(begun).toBe(0)
      const first = yield* Effect.forkChild(Effect.exit(Effect.all([shared, shared], { concurrency: 2 })), {
        startImmediately: true,
      })
      expect(begun).toBe(1)
      yield* Deferred.die(failing, new Error("broken"))
      expect(Exit.isFailure(yield* Fiber.join(first))).toBe(true)
      const second = yield* Effect.forkChild(shared, { startImmediately: true })
      expect(begun).toBe(2)
      yield* Deferred.succeed(gates[1]!, 7)
      expect([yield* Fiber.join(second), yield* shared, begun]).toEqual([7, 7, 2])
    }),
  )

  it.effect("goes on when the first client has disconnected", () =>
    Effect.gen(function* () {
      let begun = 0
      const gate = yield* Deferred.make<number>()
      const shared = yield* onceAsked(
        Effect.suspend(() => {
          begun++
          return Deferred.await(gate)
        }),
      )
      const gone = yield* Effect.forkChild(shared, { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(gone)
      const stays = yield* Effect.forkChild(shared, { startImmediately: true })
      yield* Deferred.succeed(gate, 1)
      expect([yield* Fiber.join(stays), begun]).toEqual([1, 1])
    }),
  )
})
