// A TLS listener: what it negotiates, what it does with connections that send no TLS or never finish their handshake,
// and a certificate that is exchanged while connections are open and new ones arrive.
import { X509Certificate } from "node:crypto"
import { readdirSync } from "node:fs"
import net from "node:net"
import tls from "node:tls"
import { Deferred, Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sinkResponse } from "#http/SinkBody.ts"
import { RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { inLong, runs } from "../../support/groups/Runs.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"
import {
  filesIn,
  makeAuthority,
  makePair,
  trustHere,
  writePair,
} from "../../support/servers/TestCertificates.ts"
import { eventually, startListener, type TestListener, transportUnderTest } from "../TestListener.ts"

const authority = await makeAuthority()
trustHere(authority.certificate.toString("pem"))
const dir = temporaryDir()
const files = filesIn(dir.path)
/** `auto` is Node's own server here; `npm run test:long` runs the file on uWebSockets.js. */
const automatic = runs(0, 1) === 1 ? "uws" : "node"
const transport = transportUnderTest === "auto" ? automatic : transportUnderTest
let server: TestListener
let plain: TestListener
let proceed = Deferred.makeUnsafe<void>()

const routes = [
  HttpRouter.route("GET", "/now", Effect.succeed(HttpServerResponse.text("now"))),
  HttpRouter.route(
    "GET",
    "/long",
    Effect.succeed(
      sinkResponse(
        (sink) =>
          Effect.gen(function* () {
            sink.write("begins, ")
            yield* Deferred.await(proceed)
            sink.write("and ends")
          }),
        { contentType: "text/plain" },
      ),
    ),
  ),
]

/** Writes a new pair to the listener's files and gives its fingerprint. */
const newPair = async (): Promise<string> => {
  const pair = await makePair({ issuer: authority })
  writePair(files, pair)
  return new X509Certificate(pair.cert).fingerprint256
}

beforeAll(async () => {
  await newPair()
  server = await startListener(routes, { tls: files, transport })
  plain = await startListener(routes, { tls: undefined })
})
afterAll(async () => {
  await Promise.all([server.stop(), plain.stop()])
  dir.remove()
})

interface Negotiated {
  readonly protocol: string | null
  readonly alpn: string | false | null
  readonly fingerprint: string
}

const negotiate = (options: tls.ConnectionOptions = {}): Promise<Negotiated> =>
  new Promise((resolve, reject) => {
    const socket = tls.connect({ port: server.port, host: "127.0.0.1", ...options }, () => {
      const { fingerprint256 } = socket.getPeerCertificate()
      resolve({ protocol: socket.getProtocol(), alpn: socket.alpnProtocol, fingerprint: fingerprint256 })
      socket.destroy()
    })
    socket.once("error", reject)
  })

const renew = () => Effect.runPromise(server.listener.renewCertificate)
const now = async () => (await rawRequest(server.port, requestBytes("GET", "/now"))).body.toString()

describe("a handshake", () => {
  it("takes TLS 1.2 and 1.3 and nothing older, and speaks HTTP/1.1 to a client that offers more", async () => {
    expect((await negotiate()).protocol).toBe("TLSv1.3")
    expect((await negotiate({ maxVersion: "TLSv1.2" })).protocol).toBe("TLSv1.2")
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const
    await expect(negotiate(old)).rejects.toThrow(/protocol version|unsupported/i)
    // With uWebSockets.js no protocol is chosen, which means HTTP/1.1.
    const { alpn } = await negotiate({ ALPNProtocols: ["h2", "http/1.1"] })
    expect(alpn).toBe(transport === "node" ? "http/1.1" : false)
  })

  // It waits for uWS's own timer of 10 s.
  it("that never ends holds nothing up and is cut", inLong, async () => {
    const clients = Array.from({ length: 200 }, (_, i) => {
      const socket = net.connect(server.port, "127.0.0.1")
      socket.on("error", () => {})
      // Nothing, or the first bytes of a ClientHello.
      if (i % 2 === 0) socket.write(Buffer.from([0x16, 3, 1, 0, 200, 1, 0, 0, 196]))
      return new Promise<void>((resolve) => socket.once("close", () => resolve()))
    })
    await eventually(() => server.listener.counts.connections >= 200, "they are connected")
    expect(await now()).toBe("now")
    // uWS's 10 s, counted in steps of 4 s.
    await Promise.all(clients)
    await eventually(() => server.listener.counts.connections === 0, "they are closed")
  })
})

describe("the wrong protocol", () => {
  it("plain HTTP on the TLS port ends the connection, whatever it says", async () => {
    for (const text of ["GET / HTTP/1.1\r\nhost: a\r\n\r\n", "\0".repeat(100_000), "x"]) {
      const socket = net.connect(server.port, "127.0.0.1", () => socket.write(text))
      let answer = ""
      socket.on("data", (data) => {
        answer += data.toString("latin1")
      })
      socket.on("error", () => {})
      if (text === "x") socket.end()
      await new Promise((resolve) => socket.once("close", resolve))
      expect(answer).not.toContain("HTTP/1.1 200")
    }
    expect(await now()).toBe("now")
  })

  it("TLS on a plain port is a failed handshake", async () => {
    await expect(negotiate({ port: plain.port })).rejects.toThrow()
    expect((await rawRequest(plain.port, requestBytes("GET", "/now"))).status).toBe(200)
  })
})

describe("a renewed certificate", () => {
  it("is for new connections; open ones go on with the old one, which is released with the last of them", async () => {
    const before = (await negotiate()).fingerprint
    const open = await RawConnection.open(server.port)
    await open.send(requestBytes("GET", "/long"))
    await open.bytes(200)
    const renewed = await newPair()
    await renew()
    expect(renewed).not.toBe(before)
    expect((await negotiate()).fingerprint).toBe(renewed)
    expect(server.listener.retiredCertificates()).toBe(1)
    Deferred.doneUnsafe(proceed, Effect.void)
    const answer = await open.response()
    expect([answer.body.toString(), answer.complete]).toEqual(["begins, and ends", true])
    open.destroy()
    await eventually(() => server.listener.retiredCertificates() === 0, "the old one is released")
    proceed = Deferred.makeUnsafe()
  })

  it("that does not fit its key changes nothing", async () => {
    const before = (await negotiate()).fingerprint
    const [one, two] = [await makePair({ issuer: authority }), await makePair({ issuer: authority })]
    writePair(files, { cert: one.cert, key: two.key })
    await expect(renew()).rejects.toThrow()
    expect((await negotiate()).fingerprint).toBe(before)
    expect(server.listener.retiredCertificates()).toBe(0)
  })

  it("50 times loses no connection of a client that connects all the time, and no file handle", async () => {
    const descriptors = () => (process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0)
    await newPair()
    await renew()
    expect(await now()).toBe("now")
    const before = descriptors()
    let ended = false
    const seen = new Set<string>()
    const clients = Array.from({ length: 8 }, async () => {
      while (!ended) {
        seen.add((await negotiate()).fingerprint)
        expect(await now()).toBe("now")
      }
    })
    for (let i = 0; i < 50; i++) {
      const fingerprint = await newPair()
      await renew()
      await eventually(() => seen.has(fingerprint), "a client connects")
    }
    ended = true
    await Promise.all(clients)
    expect(seen.size).toBeGreaterThanOrEqual(50)
    await eventually(() => server.listener.retiredCertificates() === 0, "all old ones are released")
    await eventually(
      () => descriptors() <= before + 2,
      `handles are given back: ${descriptors()} of ${before}`,
    )
  })

  it("keeps at most 16 old ones: then the connections of the oldest are closed", async () => {
    const open: Array<RawConnection> = []
    for (let i = 0; i < 18; i++) {
      const connection = await RawConnection.open(server.port)
      await connection.send(requestBytes("GET", "/long"))
      await connection.bytes(200)
      open.push(connection)
      await renew()
    }
    expect(server.listener.retiredCertificates()).toBe(16)
    await Promise.all(open.slice(0, 2).map(({ closed }) => closed))
    Deferred.doneUnsafe(proceed, Effect.void)
    for (const connection of open.slice(2)) {
      expect((await connection.response()).body.toString()).toBe("begins, and ends")
      connection.destroy()
    }
    await eventually(() => server.listener.retiredCertificates() === 0, "all are released")
  })
})
