// The downloader against a hub on this machine that speaks the resolve protocol, sends false data, refuses, cuts and
// stalls.
import { randomBytes } from "node:crypto"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit } from "effect"
import fc from "fast-check"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { keptAt, parseHubFile } from "#domain/models/HubFile.ts"
import type { PullSettings, PullWatcher } from "#weights/Download.ts"
import { pullFile } from "#weights/PullFile.ts"
import { pulled } from "#weights/Weights.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"
import { type FakeHub, sha256, startHub } from "../support/servers/FakeHub.ts"

const big = randomBytes(3 * 1024 * 1024 + 17)
const file = parseHubFile("hf:acme/model@c0ffee/onnx/model.onnx")!
let hub: FakeHub
let dir: ReturnType<typeof temporaryDir>

beforeAll(async () => {
  hub = await startHub({
    "acme/model/c0ffee/onnx/model.onnx": big,
    "acme/model/c0ffee/empty": Buffer.alloc(0),
  })
})
afterAll(() => hub.stop())
beforeEach(() => {
  dir = temporaryDir()
})
afterEach(() => {
  hub.reset()
  dir.remove()
})

const settings = (more: Partial<PullSettings> = {}): PullSettings => ({
  hub: { endpoint: hub.endpoint, token: undefined },
  dir: dir.path,
  attempts: 3,
  backoffMs: [1, 5],
  silenceMs: 10_000,
  ...more,
})
const quiet: PullWatcher = { waiting: () => {}, progress: () => {}, retrying: () => {} }
const pull = (sum: string | undefined, more: Partial<PullSettings> = {}, watcher = quiet) =>
  Effect.runPromise(pullFile(file, { sha256: sum }, settings(more), watcher))
const failure = async (sum: string | undefined, more: Partial<PullSettings> = {}) => {
  const error = await Effect.runPromise(Effect.flip(pullFile(file, { sha256: sum }, settings(more), quiet)))
  expect(error.message).not.toMatch(/\n|secret|hf_token/)
  return error
}
const kept = () => readFileSync(join(dir.path, keptAt(file)))
const storageRequests = () => hub.seen.filter(({ at }) => at === "storage")

describe("names", () => {
  it("are one file of one revision, and never climb out of their directory", () => {
    expect(parseHubFile("hf:a/b@c/d.gguf")).toEqual({ repo: "a/b", revision: "c", path: "d.gguf" })
    const bad = [
      "hf:b@c/d",
      "hf:a/b/d",
      "hf:a/b@c",
      "hf:a/b@c/",
      "hf:a/b@c/../d",
      "hf:../b@c/d",
      "hf:a/b@c//d",
    ]
    for (const name of [...bad, "hf:a/b@c/.d", "hf:a/b@c/d?x", "hf:a/b@c/d e", "hf:a/b@../d"])
      expect([name, parseHubFile(name)]).toEqual([name, undefined])
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseHubFile(`hf:${text}`)
        if (parsed !== undefined) expect(keptAt(parsed)).not.toMatch(/\.\.|\/\/|\/\.|\\/)
      }),
    )
  })
})

describe("a pull", () => {
  it("follows the redirect, checks the sum, and is done at once when asked again", async () => {
    const totals: Array<number> = []
    const watcher = { ...quiet, progress: (done: number) => void totals.push(done) }
    const first = await pull(sha256(big), {}, watcher)
    expect(first).toMatchObject({
      fetched: true,
      sizeBytes: big.length,
      sha256: sha256(big),
      checkedBy: "catalog",
    })
    expect(kept().equals(big)).toBe(true)
    expect(totals[0]).toBe(0)
    expect(totals.at(-1)).toBe(big.length)
    expect(await pulled(dir.path, file)).toEqual({
      sizeBytes: big.length,
      sha256: sha256(big),
      modifiedMs: expect.any(Number),
    })
    const asked = hub.seen.length
    expect(await pull(sha256(big))).toMatchObject({ fetched: false, receivedBytes: 0 })
    expect(hub.seen.length).toBe(asked)
  })

  it("is checked against the hub's sum where the catalog has none, and against none where neither has one", async () => {
    expect(await pull(undefined)).toMatchObject({ checkedBy: "hub" })
    hub.behaviour.linkedEtag = null
    const other = temporaryDir()
    expect(await pull(undefined, { dir: other.path })).not.toHaveProperty("checkedBy", "hub")
    other.remove()
  })

  it("takes a file that the hub serves itself, and one of no bytes", async () => {
    hub.behaviour.direct = true
    expect(await pull(undefined)).toMatchObject({ sizeBytes: big.length })
    expect(storageRequests()).toEqual([])
    const empty = parseHubFile("hf:acme/model@c0ffee/empty")!
    const came = await Effect.runPromise(
      pullFile(empty, { sha256: sha256(Buffer.alloc(0)) }, settings(), quiet),
    )
    expect(came.sizeBytes).toBe(0)
  })

  it("goes on where it was cut: every byte comes once", async () => {
    hub.behaviour.cutAfter = [1_000_000, 500_000, 1]
    const retried: Array<number> = []
    const watcher = { ...quiet, retrying: (_: string, attempt: number) => void retried.push(attempt) }
    const came = await pull(sha256(big), { attempts: 5 }, watcher)
    expect(came.receivedBytes).toBe(big.length)
    expect(kept().equals(big)).toBe(true)
    expect(retried).toHaveLength(3)
    // Bytes in flight when the connection broke may be lost, and are then sent again.
    const from = storageRequests().map(({ headers }) => Number(headers.range?.slice(6, -1) ?? 0))
    expect(from).toEqual(from.toSorted((a, b) => a - b))
    expect(from[1]).toBeGreaterThan(0)
    expect(from[1]).toBeLessThanOrEqual(1_000_000)
    for (const { headers } of storageRequests().slice(1))
      expect(headers["if-range"]).toBe(`"${sha256(big).slice(0, 16)}"`)
  })

  it("goes on in a later run: what came is kept", async () => {
    hub.behaviour.cutAfter = [700_000, 0, 0]
    expect((await failure(sha256(big)))._tag).toBe("HubUnreachable")
    expect(existsSync(join(dir.path, keptAt(file)))).toBe(false)
    const { receivedBytes } = await pull(sha256(big))
    expect(receivedBytes).toBeLessThan(big.length)
    expect(storageRequests().at(-1)?.headers.range).toBe(`bytes=${big.length - receivedBytes}-`)
    expect(kept().equals(big)).toBe(true)
  })

  it("starts again when the file has changed meanwhile, or ranges are not served, or tags are weak", async () => {
    hub.behaviour.cutAfter = [700_000]
    hub.behaviour.ignoreRange = true
    expect((await pull(sha256(big))).receivedBytes).toBeGreaterThan(big.length)
    expect(kept().equals(big)).toBe(true)
    const other = temporaryDir()
    hub.reset()
    hub.behaviour.cutAfter = [700_000]
    hub.behaviour.etag = 'W/"weak"'
    expect((await pull(sha256(big), { dir: other.path })).receivedBytes).toBeGreaterThan(big.length)
    expect(storageRequests().map(({ headers }) => headers.range)).toEqual([undefined, undefined])
    other.remove()
  })

  it("two at once do not disturb each other, and one of them fetches", async () => {
    hub.behaviour.pieceMs = 1
    let waited = 0
    const watcher = { ...quiet, waiting: () => void waited++ }
    const both = await Promise.all([pull(sha256(big), {}, watcher), pull(sha256(big), {}, watcher)])
    expect(both.map(({ fetched }) => fetched).sort()).toEqual([false, true])
    expect(waited).toBe(1)
    expect(storageRequests()).toHaveLength(1)
    expect(kept().equals(big)).toBe(true)
  })

  it("is slow as long as bytes come, and tried again when none do", async () => {
    hub.behaviour.pieceMs = 20
    hub.behaviour.pieceBytes = 512 * 1024
    expect(await pull(sha256(big), { silenceMs: 10_000 })).toMatchObject({ receivedBytes: big.length })
    const other = temporaryDir()
    hub.behaviour.pieceMs = 5_000
    const error = await failure(sha256(big), { silenceMs: 50, attempts: 2, dir: other.path })
    expect(error).toMatchObject({ _tag: "HubUnreachable", attempts: 2 })
    other.remove()
  })

  it("can be interrupted, and gives its lock back", async () => {
    hub.behaviour.pieceMs = 10_000
    const stop = new AbortController()
    const begun = new Promise<void>((resolve) => {
      const watcher = { ...quiet, progress: (done: number) => (done > 0 ? resolve() : undefined) }
      void Effect.runPromiseExit(pullFile(file, {}, settings(), watcher), {
        signal: stop.signal,
      }).then((exit) => expect(Exit.isFailure(exit)).toBe(true))
    })
    await begun
    stop.abort()
    hub.reset()
    expect(await pull(sha256(big))).toMatchObject({ fetched: true })
  })
})

describe("the token", () => {
  const withToken = { hub: { endpoint: "", token: "hf_token" } }
  const own = () => ({ hub: { endpoint: hub.endpoint, token: withToken.hub.token } })

  it("goes to the hub and to no host that it redirects to", async () => {
    hub.behaviour.token = "hf_token"
    await pull(sha256(big), own())
    expect(hub.seen.map(({ at, headers }) => [at, headers.authorization])).toEqual([
      ["hub", "Bearer hf_token"],
      ["storage", undefined],
    ])
  })

  it.each([
    [401, false, "set HF_TOKEN"],
    [401, true, "is not accepted"],
    [403, false, "set HF_TOKEN"],
    [403, true, "may not read"],
    [404, true, "no such repository"],
  ])("%d, token %s: one line, no second attempt", async (status, has, words) => {
    hub.behaviour.hubStatus = status
    const error = await failure(undefined, has ? own() : {})
    expect(error).toMatchObject({ _tag: "HubRefused", status })
    expect(error.message).toContain(words)
    expect(hub.seen).toHaveLength(1)
  })
})

describe("what is not right is not kept", () => {
  const nothingKept = () => {
    expect(existsSync(join(dir.path, keptAt(file)))).toBe(false)
    const parts = readdirSync(dir.path, { recursive: true, encoding: "utf8" })
    expect(parts.filter((name) => /\.(part|sum)$/.test(name))).toEqual([])
  }

  it("bytes of another sum", async () => {
    const other = Buffer.from(big)
    other[1_234_567]! ^= 1
    hub.behaviour.content = other
    for (const sum of [sha256(big), undefined]) {
      const error = await failure(sum)
      expect(error._tag).toBe("PullCorrupt")
      expect(error.message).toContain(sha256(big))
      nothingKept()
    }
    // And the next pull starts from the first byte.
    hub.reset()
    expect(await pull(sha256(big))).toMatchObject({ receivedBytes: big.length })
  })

  it("other sizes than the hub's, none at all, and more than declared", async () => {
    hub.behaviour.linkedSize = big.length + 1
    expect((await failure(undefined)).message).toContain("its storage")
    hub.reset()
    hub.behaviour.direct = true
    hub.behaviour.chunked = true
    expect((await failure(undefined)).message).toContain("size of the file")
    hub.reset()
    hub.behaviour.chunked = true
    hub.behaviour.content = Buffer.concat([big, Buffer.alloc(1)])
    expect((await failure(undefined)).message).toContain("received more")
    nothingKept()
  })

  it("a redirect for ever, or to where no file is", async () => {
    hub.behaviour.loop = true
    expect((await failure(undefined)).message).toContain("redirects")
    expect(hub.seen).toHaveLength(6)
    hub.behaviour.loop = false
    for (const location of ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://["]) {
      hub.behaviour.location = location
      expect((await failure(undefined)).message).toContain("not https")
    }
  })

  it("a hub that fails is asked a bounded number of times, and waited for", async () => {
    hub.behaviour.storageStatuses = [503, 429]
    expect(await pull(sha256(big))).toMatchObject({ fetched: true })
    const other = temporaryDir()
    hub.behaviour.storageStatuses = [500, 502, 503, 504]
    hub.seen.length = 0
    expect(await failure(undefined, { dir: other.path })).toMatchObject({
      _tag: "HubUnreachable",
      attempts: 3,
    })
    expect(storageRequests()).toHaveLength(3)
    other.remove()
    const closed = await failure(undefined, {
      hub: { endpoint: "http://127.0.0.1:1", token: undefined },
      dir: join(dir.path, "x"),
    })
    expect(closed.message).toContain("ECONNREFUSED")
  })

  it("more than the free disk space: refused before anything is written", async () => {
    hub.behaviour.declared = 2 ** 50
    hub.behaviour.linkedSize = 2 ** 50
    const error = await failure(undefined)
    expect(error._tag).toBe("CannotKeep")
    expect(error.message).toMatch(/needs \d+ bytes of disk, \d+ are free/)
    nothingKept()
  })

  it("a directory that cannot be written", async () => {
    writeFileSync(join(dir.path, "hf"), "a file")
    expect((await failure(undefined))._tag).toBe("CannotKeep")
  })
})

it("a file of another checksum than the catalog's is pulled again", async () => {
  await pull(undefined)
  const newer = Buffer.concat([big, Buffer.from("more")])
  hub.behaviour.content = newer
  hub.behaviour.linkedSize = newer.length
  expect(await pull(sha256(newer))).toMatchObject({ fetched: true, sizeBytes: newer.length })
  expect(kept().equals(newer)).toBe(true)
})
