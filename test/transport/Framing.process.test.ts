// Requests that two parsers could read differently, as raw bytes. Each is refused or its connection is closed, at the
// latest when the deadline for a head is over (10 to 12 s: only `npm run test:long` waits for it), and nothing of it
// reaches the application. What
// uWebSockets.js nevertheless accepts stands below, in a table of its own: see docs/security.md.
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { RawConnection } from "../support/clients/RawHttp.ts"
import { inLong } from "../support/groups/Runs.ts"
import { onNode, startListener, type TestListener } from "./TestListener.ts"

let server: TestListener
/** Targets that reached the application. */
const served: Array<string> = []

const answer = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  served.push(request.url)
  if (request.url.startsWith("/ws")) {
    const socket = yield* request.upgrade
    yield* Effect.scoped(Effect.flatMap(socket.reader, (reader) => reader.pull)).pipe(Effect.ignore)
    return HttpServerResponse.empty()
  }
  return HttpServerResponse.text(yield* request.text)
})

const every = (["GET", "POST"] as const).map((method) => HttpRouter.route(method, "/*", answer))
beforeAll(async () => {
  server = await startListener(every)
})
afterAll(() => server.stop())

interface Outcome {
  /** Of every answer, in order. */
  readonly statuses: ReadonlyArray<number>
  readonly text: string
  readonly closed: boolean
}

/** Only ends what hangs: uWS closes a head without an end after 10 s, counted in steps of 4 s. */
const patienceMs = 60_000
/** Sends the bytes and waits until the server has closed the connection, or `until` is over. */
const closedBy = async (
  bytes: string,
  until: Promise<unknown> = new Promise((resolve) => setTimeout(resolve, patienceMs).unref()),
  port = server.port,
): Promise<Outcome> => {
  const connection = await RawConnection.open(port)
  await connection.send(Buffer.from(bytes, "latin1"))
  const closed = await Promise.race([connection.closed.then(() => true), until.then(() => false)])
  connection.destroy()
  const text = connection.unread.toString("latin1")
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  return { text, closed, statuses }
}

const host = "Host: test\r\n"
const post = (headers: string, body = "{}") => `POST /bad HTTP/1.1\r\n${host}${headers}\r\n${body}`
const get = (headers: string) => `GET /bad HTTP/1.1\r\n${host}${headers}\r\n`
const chunked = "Transfer-Encoding: chunked\r\n"
const chunks = "2\r\n{}\r\n0\r\n\r\n"
const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
const version = "Sec-WebSocket-Version: 13\r\n"
const upgrade = (headers: string, method = "GET", connection = "Upgrade") =>
  `${method} /ws HTTP/1.1\r\n${host}Upgrade: websocket\r\nConnection: ${connection}\r\n${headers}\r\n`
const behind = `GET /bad HTTP/1.1\r\n${host}\r\n`

/** A PROXY protocol header, version 2, naming 1.2.3.4 as the caller. */
const proxyV2 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01\x00\x02"

/** What is sent, and the status it may get; `closed` is a connection that ends without an answer. */
const malformed: ReadonlyArray<readonly [name: string, bytes: string, outcome: number | "closed"]> = [
  ["two equal lengths", post("Content-Length: 2\r\nContent-Length: 2\r\n"), 400],
  ["two different lengths", post("Content-Length: 2\r\nContent-Length: 40\r\n"), 400],
  [
    "a request in the longer of two lengths",
    post("Content-Length: 2\r\nContent-Length: 40\r\n", `{}${behind}`),
    "closed",
  ],
  ["two lengths on GET", get("Content-Length: 0\r\nContent-Length: 0\r\n"), 400],
  ["a list of lengths", post("Content-Length: 2, 2\r\n"), 400],
  ["an empty length", post("Content-Length:\r\n"), 400],
  ["an empty length on GET", get("Content-Length: \r\n"), 400],
  ["a length with a plus", post("Content-Length: +2\r\n"), 400],
  ["a negative length", post("Content-Length: -2\r\n"), 400],
  ["a length with a space inside", post("Content-Length: 2 2\r\n"), 400],
  ["a hexadecimal length", post("Content-Length: 0x2\r\n"), 400],
  ["a length with a fraction", post("Content-Length: 2.0\r\n"), 400],
  ["a length in words", post("Content-Length: two\r\n"), 400],
  ["a length of 18 digits", post("Content-Length: 999999999999999999\r\n"), 400],
  ["a length of 30 digits", post(`Content-Length: ${"9".repeat(30)}\r\n`), 400],
  ["a length and chunked", post(`Content-Length: 2\r\n${chunked}`, chunks), 400],
  ["chunked and a length", post(`${chunked}Content-Length: 2\r\n`, chunks), 400],
  ["an empty encoding and a length", post("Transfer-Encoding:\r\nContent-Length: 2\r\n"), 400],
  ["encoding xchunked", post("Transfer-Encoding: xchunked\r\n", chunks), 400],
  ["encoding gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n", chunks), 400],
  ["encoding chunked, identity", post("Transfer-Encoding: chunked, identity\r\n", chunks), 400],
  ["encoding identity", post("Transfer-Encoding: identity\r\n"), 400],
  ["encoding gzip", post("Transfer-Encoding: gzip\r\n", chunks), 400],
  ["an empty encoding", post("Transfer-Encoding:\r\n", chunks), 400],
  ["chunked twice in one header", post("Transfer-Encoding: chunked, chunked\r\n", chunks), 400],
  ["two encodings", post(`${chunked}${chunked}`, chunks), 400],
  ["chunked with a parameter", post("Transfer-Encoding: chunked;q=1\r\n", chunks), 400],
  ["chunked in quotes", post('Transfer-Encoding: "chunked"\r\n', chunks), 400],
  ["a space before the colon", get("A : b\r\n"), "closed"],
  ["a space before a length's colon", post("Content-Length : 2\r\n"), "closed"],
  ["a folded header", get("A: b\r\n c\r\n"), "closed"],
  ["a header line that ends with LF", get("A: b\nB: c\r\n"), "closed"],
  ["a bare CR in a header", get("A: b\rB: c\r\n"), "closed"],
  ["a head that ends with LF", `GET /bad HTTP/1.1\n${host}\n`, 505],
  ["NUL in a header", get("A: b\0c\r\n"), "closed"],
  ["a control character in a header", get("A: b\x01c\r\n"), "closed"],
  ["NUL in a header's name", get("A\0: b\r\n"), "closed"],
  ["a header without a colon", get("A\r\n"), "closed"],
  ["a header without a name before Host", `GET /bad HTTP/1.1\r\n: b\r\n${host}\r\n`, 400],
  ["a parenthesis in a header's name", get("A(b: c\r\n"), "closed"],
  ["no Host", "GET /bad HTTP/1.1\r\nA: b\r\n\r\n", 400],
  ["no headers", "GET /bad HTTP/1.1\r\n\r\n", "closed"],
  ["an empty Host", "GET /bad HTTP/1.1\r\nHost:\r\n\r\n", 400],
  ["two Hosts", get(host), 400],
  ["two Hosts in one header", "GET /bad HTTP/1.1\r\nHost: a, b\r\n\r\n", 400],
  ["a Host with a path", "GET /bad HTTP/1.1\r\nHost: a/b\r\n\r\n", 400],
  ["a Host with a user", "GET /bad HTTP/1.1\r\nHost: a@b\r\n\r\n", 400],
  ["an absolute target", `GET http://test/bad HTTP/1.1\r\n${host}\r\n`, 505],
  ["an asterisk", `OPTIONS * HTTP/1.1\r\n${host}\r\n`, 505],
  ["an authority", `CONNECT test:443 HTTP/1.1\r\n${host}\r\n`, 505],
  ["a target without a slash", `GET bad HTTP/1.1\r\n${host}\r\n`, 505],
  ["a target with a fragment", `GET /bad#a HTTP/1.1\r\n${host}\r\n`, 400],
  ["a control character in the target", `GET /bad\x01 HTTP/1.1\r\n${host}\r\n`, 505],
  ["two spaces before the target", `GET  /bad HTTP/1.1\r\n${host}\r\n`, 505],
  ["tabs in the request line", `GET\t/bad\tHTTP/1.1\r\n${host}\r\n`, 505],
  ["an empty line before the request", `\r\n${behind}`, "closed"],
  ["HTTP/0.9", "GET /bad\r\n", "closed"],
  ["HTTP/1.0", `GET /bad HTTP/1.0\r\n${host}\r\n`, 505],
  ["HTTP/1.2", `GET /bad HTTP/1.2\r\n${host}\r\n`, 505],
  ["HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
  ["a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 505],
  ["PROXY protocol 1", `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${behind}`, 505],
  ["PROXY protocol 2", `${proxyV2}${behind}`, 400],
  ["an empty method", ` /bad HTTP/1.1\r\n${host}\r\n`, 400],
  ["a method that is no token", `G@T /bad HTTP/1.1\r\n${host}\r\n`, 400],
  ["a method of 40 characters", `${"A".repeat(40)} /bad HTTP/1.1\r\n${host}\r\n`, 400],
  ["a request line of 70,000 bytes", `GET /${"a".repeat(70_000)} HTTP/1.1\r\n${host}\r\n`, 431],
  ["a request line of 40,000 bytes", `GET /${"a".repeat(40_000)} HTTP/1.1\r\n${host}\r\n`, 431],
  ["a header of 70,000 bytes", get(`A: ${"a".repeat(70_000)}\r\n`), 431],
  ["101 headers", get("A: b\r\n".repeat(101)), 431],
  ["a head without an end", `GET /bad HTTP/1.1\r\n${host}A: b`, "closed"],
  ["a chunk size in words", post(chunked, "zz\r\n{}\r\n0\r\n\r\n"), 400],
  ["a negative chunk size", post(chunked, "-2\r\n{}\r\n0\r\n\r\n"), 400],
  ["a chunk size with 0x", post(chunked, "0x2\r\n{}\r\n0\r\n\r\n"), 400],
  ["a chunk size past 64 bits", post(chunked, "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"), 400],
  ["a WebSocket of version 8", upgrade(`${key}Sec-WebSocket-Version: 8\r\n`), 426],
  ["a WebSocket without a version", upgrade(key), 426],
  ["a WebSocket of two versions", upgrade(`${key}${version}${version}`), 426],
  ["a WebSocket without a key", upgrade(version), 400],
  ["a WebSocket with two keys", upgrade(`${key}${key}${version}`), 400],
  ["a WebSocket key of 15 bytes", upgrade(`Sec-WebSocket-Key: ${"A".repeat(20)}\r\n${version}`), 400],
  ["a WebSocket key that is no base64", upgrade(`Sec-WebSocket-Key: ${"!".repeat(22)}==\r\n${version}`), 400],
  ["a WebSocket key of 18 bytes", upgrade(`Sec-WebSocket-Key: ${"A".repeat(24)}\r\n${version}`), 400],
  ["a WebSocket by POST", upgrade(`${key}${version}`, "POST"), 400],
  ["a WebSocket without Connection: Upgrade", upgrade(`${key}${version}`, "GET", "keep-alive"), 400],
  [
    "a WebSocket that is to be closed",
    upgrade(`${key}${version}`, "GET", "close\r\nConnection: Upgrade"),
    400,
  ],
  ["a WebSocket with a body", `${upgrade(`Content-Length: 3\r\n${key}${version}`)}abc`, 400],
  [
    "a WebSocket with a chunked body",
    `${upgrade(`Transfer-Encoding: chunked\r\n${key}${version}`)}${chunks}`,
    400,
  ],
]

/** What Node's server, alone, answers as valid. */
const fineOnNode = ["HTTP/1.0", "an empty line before the request", "two spaces before the target"]
/** Where nothing is answered: the head has no end. */
const unanswered = ["a head without an end", "HTTP/0.9"]

/** Node's server says 400 where uWebSockets.js says 505, or nothing until the deadline. */
const expectedOn = (isNode: boolean) =>
  malformed
    .filter(([name]) => !isNode || !fineOnNode.includes(name))
    .map(([name, bytes, outcome]) => {
      const says = outcome === 505 || (outcome === "closed" && !unanswered.includes(name)) ? 400 : outcome
      return [name, bytes, isNode ? says : outcome] as const
    })

describe("malformed requests", () => {
  const linesOf = (expected: ReturnType<typeof expectedOn>, says: (at: number) => number | string) =>
    expected.map(([name], at) => `${name}: ${says(at)}`)

  it("are refused or get no answer, and none is served", async () => {
    const expected = expectedOn(onNode)
    let refused = () => {}
    const others = new Promise<void>((resolve) => {
      refused = resolve
    })
    const sent = expected.map(([, bytes, outcome]) =>
      outcome === "closed" ? closedBy(bytes, others) : closedBy(bytes),
    )
    await Promise.all(sent.filter((_, at) => expected[at]?.[2] !== "closed"))
    refused()
    const outcomes = await Promise.all(sent)
    const found = linesOf(expected, (at) => {
      const { closed, statuses } = outcomes[at]!
      if (statuses.length === 0) return "closed"
      return closed ? statuses.join(" ") : "open"
    })
    expect(found).toEqual(linesOf(expected, (at) => expected[at]![2]))
    expect(served).toEqual([])
    const old = outcomes[expected.findIndex(([name]) => name.includes("version 8"))]
    expect(old?.text.toLowerCase()).toContain("\r\nsec-websocket-version: 13\r\n")
  })

  it.each(["auto", "node"] as const)(
    "have their connection closed where they get no answer (%s)",
    inLong,
    async (transport) => {
      const listener = await startListener(every, { transport })
      const silent = expectedOn(listener.listener.transport.name === "node").filter(
        ([, , outcome]) => outcome === "closed",
      )
      const outcomes = await Promise.all(silent.map(([, bytes]) => closedBy(bytes, undefined, listener.port)))
      expect(linesOf(silent, (at) => `${outcomes[at]?.closed} ${outcomes[at]?.text}`)).toEqual(
        linesOf(silent, () => "true "),
      )
      expect(served).toEqual([])
      await listener.stop()
    },
  )
})

describe("well-formed requests", () => {
  it("that are neighbours of malformed ones are served", async () => {
    served.length = 0
    for (const [bytes, status] of [
      [post("Content-Length: 2\r\n"), 200],
      [post("Content-Length: 0\r\n", ""), 200],
      [post("Transfer-Encoding: Chunked\r\n", chunks), 200],
      [get("Host-Of: a, b\r\n"), 200],
      ["GET /bad HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 200],
      ["GET /bad HTTP/1.1\r\nHost: a.example:1\r\n\r\n", 200],
      [upgrade(`${key}${version}`, "GET", "keep-alive, Upgrade"), 101],
    ] as const) {
      const connection = await RawConnection.open(server.port)
      await connection.send(Buffer.from(bytes, "latin1"))
      await connection.bytes(12)
      expect([bytes, connection.unread.subarray(0, 12).toString()]).toEqual([bytes, `HTTP/1.1 ${status}`])
      connection.destroy()
    }
    expect(served).toHaveLength(7)
  })
})

/**
 * uWS hides chunk lines from the application and reads them more freely than RFC 9112 allows. What follows such a body
 * on its connection is therefore never taken for a request, and the connection is closed.
 */
const lenient: ReadonlyArray<readonly [name: string, body: string]> = [
  ["a chunk line that ends with LF", "2\n{}\r\n0\r\n\r\n"],
  ["a chunk without its CRLF", "2\r\n{}XX0\r\n\r\n"],
  ["a chunk extension behind a space", "2 ;a=b\r\n{}\r\n0\r\n\r\n"],
  ["a chunk line without a size", "\r\n"],
  ["a colon as a digit", ":\r\n0123456789\r\n0\r\n\r\n"],
  ["a well-formed body", chunks],
  ["trailers", "2\r\n{}\r\n0\r\nA: b\r\n\r\n"],
]

const exact = ["a well-formed body", "trailers"]

const readExactly = () => {
  it("are refused if one line of them is wrong", async () => {
    const smuggled = `GET /smuggled HTTP/1.1\r\n${host}\r\n`
    const wrong = lenient.filter(([name]) => !exact.includes(name))
    // At once: each connection lingers after its refusal.
    const said = await Promise.all(
      wrong.map(async ([name, body]) => {
        const alone = closedBy(post(chunked, body))
        const followed = closedBy(`${post(chunked, body)}${smuggled}`)
        const statuses = [(await alone).statuses, (await followed).statuses]
        return [name, statuses, (await alone).closed && (await followed).closed]
      }),
    )
    expect(said).toEqual(wrong.map(([name]) => [name, [[400], [400]], true]))
    expect(served).not.toContain("/smuggled")
  })

  it.each(lenient.filter(([name]) => exact.includes(name)))(
    "leave their connection to the next request: %s",
    async (_name, body) => {
      const connection = await RawConnection.open(server.port)
      await connection.send(`${post(chunked, body)}${get("")}`)
      expect((await connection.response()).body.toString()).toBe("{}")
      expect((await connection.response()).status).toBe(200)
      connection.destroy()
    },
  )
}

const readLeniently = () => {
  it.each(lenient)("end their connection: %s", async (_name, body) => {
    const bytes = post(chunked, body)
    expect(await closedBy(bytes)).toMatchObject({ closed: true })
    // Behind the body in one write, and in a write of its own.
    const smuggled = `GET /smuggled HTTP/1.1\r\n${host}\r\n`
    expect(await closedBy(`${bytes}${smuggled}`)).toMatchObject({ closed: true })
    const connection = await RawConnection.open(server.port)
    await connection.send(Buffer.from(bytes, "latin1"))
    await connection.send(smuggled)
    await connection.closed
    expect(served).not.toContain("/smuggled")
  })
}

describe("chunked bodies", onNode ? readExactly : readLeniently)

describe("a listener without chunked bodies", () => {
  it("wants a length", async () => {
    const strict = await startListener([HttpRouter.route("POST", "/*", answer)], {
      settings: { chunkedBodies: false },
    })
    const connection = await RawConnection.open(strict.port)
    await connection.send(Buffer.from(post(chunked, chunks), "latin1"))
    expect((await connection.response()).status).toBe(411)
    await connection.closed
    served.length = 0
    const lengthed = await RawConnection.open(strict.port)
    await lengthed.send(post("Content-Length: 2\r\n"))
    expect((await lengthed.response()).status).toBe(200)
    lengthed.destroy()
    expect(served).toEqual(["/bad"])
    await strict.stop()
  })
})

/** A frame's first two bytes and what follows; the mask is zero, so the content stands as it is. */
const frames: ReadonlyArray<readonly [name: string, bytes: ReadonlyArray<number>]> = [
  ["the first reserved bit", [0xc1, 0x81, 0, 0, 0, 0, 97]],
  ["the second reserved bit", [0xa1, 0x81, 0, 0, 0, 0, 97]],
  ["a data opcode that is not defined", [0x83, 0x81, 0, 0, 0, 0, 97]],
  ["a control opcode that is not defined", [0x8b, 0x80, 0, 0, 0, 0]],
  ["a ping in fragments", [0x09, 0x80, 0, 0, 0, 0]],
  ["a ping of 126 bytes", [0x89, 0xfe, 0, 126, 0, 0, 0, 0, ...new Array<number>(126).fill(0)]],
  ["a continuation of nothing", [0x80, 0x81, 0, 0, 0, 0, 97]],
  ["a text inside a text", [0x01, 0x81, 0, 0, 0, 0, 97, 0x81, 0x81, 0, 0, 0, 0, 97]],
  ["a text that is not UTF-8", [0x81, 0x81, 0, 0, 0, 0, 0xff]],
  ["4 GB", [0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]],
  ["a length of 64 bits", [0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]],
  ["a close code of one byte", [0x88, 0x81, 0, 0, 0, 0, 3]],
]

describe.concurrent("a WebSocket is closed for a frame with", () => {
  it.each(frames)("%s", async (_name, bytes) => {
    const connection = await RawConnection.open(server.port)
    await connection.send(upgrade(`${key}${version}`))
    await connection.bytes(12)
    await connection.send(Uint8Array.from(bytes))
    await connection.closed
  })
})
