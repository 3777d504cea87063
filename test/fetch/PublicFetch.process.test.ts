// Fetching a clip from a URL that a caller names: what is returned, and which addresses are never dialled.
import { createServer, type RequestListener, type Server } from "node:http"
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { isPublicAddress } from "#domain/access/PublicAddress.ts"
import { FetchRefused } from "#fetch/FetchRefused.ts"
import { type FetchOptions, makePublicFetch } from "#fetch/PublicFetch.ts"
import { reason } from "../support/process/Reason.ts"

const clip = Buffer.alloc(50_000, "RIFF")

/** A listener on loopback for the length of the test. */
const listening = (handler: RequestListener) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer(handler)
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      }),
  )
/** The same without HTTP: the handler writes the raw bytes of the answer. */
const tcpListening = (handler: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.callback<TcpServer>((resume) => {
      const server = createTcpServer((socket) => {
        // Bytes sent before the request would not be an answer to it.
        socket.once("data", () => handler(socket))
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close()),
  )
const portOf = (server: { address: () => unknown }) => (server.address() as AddressInfo).port

/** Names resolve to loopback, which this test allows; the product never allows it. */
const terms = { maxBytes: 25 * 1024 * 1024, plainHttp: true }
const fetcherOf = (options: Partial<FetchOptions>) => ({ fetch: makePublicFetch({ ...terms, ...options }) })
const onLoopback = (options: Partial<FetchOptions> = {}) =>
  fetcherOf({
    resolve: () => Effect.succeed(["127.0.0.1"]),
    allowed: (address) => address === "127.0.0.1" || isPublicAddress(address),
    ...options,
  })

describe("a public address", () => {
  it.live("returns the bytes, asking for nothing that identifies the node", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const server = yield* listening((request, response) => {
        seen.push([request.method, request.url, request.headers])
        response.end(clip)
      })
      const bytes = yield* onLoopback().fetch(
        `http://voices.example:${portOf(server)}/a/clip.wav?x=1#y`,
        "user",
      )
      expect(clip.equals(bytes)).toBe(true)
      expect(seen).toEqual([
        [
          "GET",
          "/a/clip.wav?x=1",
          {
            host: `voices.example:${portOf(server)}`,
            "user-agent": "edgewise",
            accept: "*/*",
            "accept-encoding": "identity",
            connection: "close",
          },
        ],
      ])
    }),
  )

  it.live("follows three redirects, relative ones too, and not a fourth", () =>
    Effect.gen(function* () {
      const server = yield* listening((request, response) => {
        const left = Number(request.url?.slice(1))
        if (left === 0) return void response.end(clip)
        response.writeHead([301, 302, 307, 308][left % 4]!, { location: `${left - 1}` }).end()
      })
      const base = `http://voices.example:${portOf(server)}`
      expect((yield* onLoopback().fetch(`${base}/3`, "user")).length).toBe(clip.length)
      expect(yield* reason(onLoopback().fetch(`${base}/4`, "user"))).toBe("Redirects")
    }),
  )

  it.live("checks every redirect anew", () =>
    Effect.gen(function* () {
      let trapped = 0
      const trap = yield* listening((_, response) => {
        trapped++
        response.end()
      })
      let location = ""
      const server = yield* listening((_, response) => response.writeHead(302, { location }).end())
      const asked: Array<string> = []
      const fetcher = fetcherOf({
        resolve: (host) => {
          asked.push(host)
          return Effect.succeed([host === "public.example" ? "127.0.0.1" : "127.0.0.2"])
        },
        // The first hop only: 127.0.0.1 stands for a public address, 127.0.0.2 for an inner one.
        allowed: (address) => address === "127.0.0.1",
      })
      for (const [target, expected] of [
        [`http://inner.example:${portOf(trap)}/`, "NotPublic"],
        [`//inner.example:${portOf(trap)}/`, "NotPublic"],
        [`http://127.0.0.2:${portOf(trap)}/`, "NotPublic"],
        [`http://[::1]:${portOf(trap)}/`, "NotPublic"],
        [`http://2130706434:${portOf(trap)}/`, "BadUrl"],
        [`ftp://inner.example:${portOf(trap)}/`, "BadUrl"],
        ["file:///etc/hosts", "BadUrl"],
        [`http://user:secret@public.example:${portOf(trap)}/`, "BadUrl"],
        [`http://user@public.example:${portOf(trap)}/`, "BadUrl"],
        [`http://:secret@public.example:${portOf(trap)}/`, "BadUrl"],
      ] as const) {
        location = target
        expect(yield* reason(fetcher.fetch(`http://public.example:${portOf(server)}/`, "user")), target).toBe(
          expected,
        )
      }
      expect(trapped).toBe(0)
      expect(new Set(asked)).toEqual(new Set(["public.example", "inner.example"]))
    }),
  )

  it.live("dials the address that was checked, though the name answers differently the next time", () =>
    Effect.gen(function* () {
      const server = yield* listening((_, response) => response.end(clip))
      let asked = 0
      const fetcher = fetcherOf({
        resolve: () => Effect.succeed([++asked === 1 ? "127.0.0.1" : "127.0.0.9"]),
        allowed: (address) => address === "127.0.0.1",
      })
      expect((yield* fetcher.fetch(`http://rebind.example:${portOf(server)}/`, "user")).length).toBe(
        clip.length,
      )
      expect(asked).toBe(1)
    }),
  )

  it.live("refuses a name if any of its addresses is inside, or if it has none", () =>
    Effect.gen(function* () {
      const answers = (...addresses: ReadonlyArray<string>) =>
        reason(fetcherOf({ resolve: () => Effect.succeed(addresses) }).fetch("http://mixed.example/", "user"))
      expect(yield* answers("8.8.8.8", "10.0.0.1")).toBe("NotPublic")
      expect(yield* answers("8.8.8.8", "::1")).toBe("NotPublic")
      expect(yield* answers("::ffff:127.0.0.1")).toBe("NotPublic")
      expect(yield* answers()).toBe("NotPublic")
    }),
  )

  it.live("stops at its size, whether declared beforehand or not, and at its time", () =>
    Effect.gen(function* () {
      let opened = 0
      let cut = 0
      const server = yield* listening((request, response) => {
        opened++
        response.on("close", () => cut++)
        if (request.url === "/exact") return void response.end(clip)
        if (request.url === "/told") response.writeHead(200, { "content-length": clip.length + 1 })
        if (request.url === "/silent") return
        const flow = () => {
          while (!response.destroyed && response.write(clip));
        }
        response.on("drain", flow)
        flow()
      })
      const base = `http://voices.example:${portOf(server)}`
      const fetcher = onLoopback({ maxBytes: clip.length })
      expect((yield* fetcher.fetch(`${base}/exact`, "user")).length).toBe(clip.length)
      expect(yield* reason(fetcher.fetch(`${base}/told`, "user"))).toBe("TooLarge")
      expect(yield* reason(fetcher.fetch(`${base}/endless`, "user"))).toBe("TooLarge")
      expect(yield* reason(onLoopback({ timeoutMs: 100 }).fetch(`${base}/silent`, "user"))).toBe("TimedOut")
      const never = fetcherOf({ timeoutMs: 50, resolve: () => Effect.never })
      expect(yield* reason(never.fetch("http://slow.example/", "user"))).toBe("TimedOut")
      const before = opened
      const fiber = yield* Effect.forkChild(fetcher.fetch(`${base}/silent`, "user"), {
        startImmediately: true,
      })
      while (opened === before) yield* Effect.sleep(5)
      yield* Fiber.interrupt(fiber)
      // Every connection was closed from this side.
      while (cut < opened) yield* Effect.sleep(5)
    }),
  )

  it.live("refuses answers that are no clip", () =>
    Effect.gen(function* () {
      const server = yield* listening((request, response) => {
        switch (request.url) {
          case "/404":
            return void response.writeHead(404).end("no")
          case "/204":
            return void response.writeHead(204).end()
          case "/gzip":
            return void response.writeHead(200, { "content-encoding": "gzip" }).end(clip)
          case "/redirect-nowhere":
            return void response.writeHead(302).end()
          case "/cut":
            response.writeHead(200, { "content-length": 100 })
            response.write("half")
            return void setTimeout(() => response.destroy(), 5)
        }
      })
      const base = `http://voices.example:${portOf(server)}`
      const outcome = (path: string) => reason(onLoopback().fetch(base + path, "user"))
      expect(yield* outcome("/404")).toBe("Status")
      expect(yield* outcome("/204")).toBe("Status")
      expect(yield* outcome("/redirect-nowhere")).toBe("Status")
      expect(yield* outcome("/gzip")).toBe("Encoding")
      expect(yield* outcome("/cut")).toBe("Failed")
      const notHttp = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createTcpServer>>((resume) => {
          const tcp = createTcpServer((socket) => socket.on("error", () => {}).end("220 smtp ready\r\n"))
          tcp.listen(0, "127.0.0.1", () => resume(Effect.succeed(tcp)))
        }),
        (tcp) => Effect.sync(() => tcp.close()),
      )
      expect(yield* reason(onLoopback().fetch(`http://x.example:${portOf(notHttp)}/`, "user"))).toBe("Failed")
      expect(yield* reason(onLoopback().fetch(`https://x.example:${portOf(server)}/`, "user"))).toBe("Failed")
    }),
  )

  it.live("bounds the fetches at a time", () =>
    Effect.gen(function* () {
      const fetcher = fetcherOf({ resolve: () => Effect.never, maxConcurrent: 2 })
      const two = yield* Effect.forEach([1, 2], () =>
        Effect.forkChild(fetcher.fetch("http://slow.example/", "user"), { startImmediately: true }),
      )
      expect(yield* reason(fetcher.fetch("http://slow.example/", "other"))).toBe("Busy")
      for (const fiber of two) yield* Fiber.interrupt(fiber)
      const refused = Effect.fail(new FetchRefused({ reason: "NotResolved", detail: "none" }))
      const after = fetcherOf({ resolve: () => refused, maxConcurrent: 1 })
      for (let i = 0; i < 3; i++)
        expect(yield* reason(after.fetch("http://none.example/", "user"))).toBe("NotResolved")
    }),
  )

  it.live("fetches half as many clips at a time for one user as for all", () =>
    Effect.gen(function* () {
      const server = yield* listening((request, response) => {
        if (request.url === "/quick") response.end(clip)
      })
      const base = `http://voices.example:${portOf(server)}`
      const fetcher = onLoopback()
      const slow = yield* Effect.forEach([1, 2, 3, 4], () =>
        Effect.forkChild(fetcher.fetch(`${base}/slow`, "greedy"), { startImmediately: true }),
      )
      expect(yield* reason(fetcher.fetch(`${base}/quick`, "greedy"))).toBe("Busy")
      expect((yield* fetcher.fetch(`${base}/quick`, "other")).length).toBe(clip.length)
      for (const fiber of slow) yield* Fiber.interrupt(fiber)
      expect((yield* fetcher.fetch(`${base}/quick`, "greedy")).length).toBe(clip.length)
    }),
  )

  it.live("gives up a clip that comes in pieces of one byte, soon", () =>
    Effect.gen(function* () {
      let taken = 0
      const server = yield* tcpListening((socket) => {
        const chunks = Buffer.from("1\r\na\r\n".repeat(10_000))
        const send = (): void => {
          while (!socket.destroyed && taken < 100 && socket.write(chunks)) taken++
          taken++
        }
        socket.on("error", () => {}).on("drain", send)
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        send()
      })
      const url = `http://voices.example:${portOf(server)}/clip.wav`
      expect(yield* reason(onLoopback().fetch(url, "user"))).toBe("Scattered")
      // One read of the fetch ends it; the kernel accepts as much as its buffers hold.
      expect(taken).toBeLessThan(100)
    }),
  )

  it.live("gives up an answer behind endless interim answers", () =>
    Effect.gen(function* () {
      const server = yield* tcpListening((socket) => {
        socket.on("error", () => {})
        socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1_000))
      })
      const url = `http://voices.example:${portOf(server)}/clip.wav`
      expect(yield* reason(onLoopback().fetch(url, "user"))).toBe("Failed")
    }),
  )

  it.live("never reaches a listener of this machine, whatever 300 hostile URLs say", () =>
    Effect.gen(function* () {
      let reached = 0
      const trap = yield* listening((_, response) => {
        reached++
        response.end(clip)
      })
      trap.on("connection", () => reached++)
      const port = portOf(trap)
      const inner =
        `127.0.0.1 127.1 127.0.1 0 0.0.0.0 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.0.0.1.
        0x7F.0x0.0x0.0x1 127.00.0.01 127.0.0.2 127.255.255.254 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254
        100.64.0.1 224.0.0.1 255.255.255.255 [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1]
        [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [2002:7f00:0001::1] [fe80::1] [fc00::1]
        [fd00::1] [ff02::1] [2001:db8::1] [::ffff:0:127.0.0.1] localhost LOCALHOST localhost. foo.localhost
        ip6-localhost localhost.localdomain １２７.0.0.1 127。0。0。1 ⑫7.0.0.1 %31%32%37.0.0.1 127.0.0.1%00 127.0.0.1%2f
        rebind.example inner.example`.split(/\s+/)
      const shapes: ReadonlyArray<(host: string) => string> = [
        (host) => `http://${host}:${port}/`,
        (host) => `https://${host}:${port}/clip.wav`,
        (host) => `http://user:pass@${host}:${port}/`,
        (host) => `http://8.8.8.8@${host}:${port}/`,
        (host) => `HTTP:\\\\${host}:${port}\\`,
        (host) => `http:/${host}:${port}/`,
        (host) => ` http://${host}:${port}/\t`,
      ]
      const odd = [
        "",
        "/",
        "//",
        "http:",
        "http://",
        "http:///",
        "https://:80/",
        "javascript:alert(1)",
        "data:audio/wav;base64,AAAA",
        `file:///proc/self/environ`,
        `gopher://127.0.0.1:${port}/`,
        `ftp://127.0.0.1:${port}/`,
        `ws://127.0.0.1:${port}/`,
        `unix:/run/x.sock`,
        `http+unix://%2Frun%2Fx.sock/`,
        `http://[::1`,
        `http://[::1]x:${port}/`,
        `http://127.0.0.1:99999/`,
        `blob:http://127.0.0.1:${port}/x`,
        `view-source:http://127.0.0.1:${port}/`,
        `http://${"a".repeat(3000)}.example/`,
      ]
      const urls = [...inner.flatMap((host) => shapes.map((shape) => shape(host))), ...odd]
      expect(urls.length).toBeGreaterThan(300)
      // No name server is queried: names resolve to addresses that an attacker's server would return.
      const resolve = (host: string) =>
        Effect.succeed(host.includes("rebind") ? ["8.8.8.8", "127.0.0.1"] : ["127.0.0.1"])
      const fetcher = fetcherOf({ resolve })
      const reasons = new Set<string>()
      for (const url of urls) reasons.add(yield* reason(fetcher.fetch(url, "user")))
      expect(reached).toBe(0)
      expect([...reasons].sort()).toEqual(["BadUrl", "NotPublic"])
    }),
  )
})
