// A node behind nginx, HAProxy and Caddy with the configurations that docs/proxies.md prints: streams arrive as they
// are made, uploads stream, WebSockets work, callers have their own addresses, and a disconnect ends the request.
import { statSync } from "node:fs"
import http from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import {
  deltas,
  lastWord,
  listener,
  noise,
  speak,
  untilCaptionsAreCheap,
} from "../../support/clients/LiveClient.ts"
import { filePart, partHead } from "../../support/clients/MultipartBody.ts"
import { chunkedBytes, jsonOf, RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { TextStream, textOf } from "../../support/clients/TextStream.ts"
import { poll, uploads } from "../../support/clients/TranscriptionClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeVoice, scriptSamples, spokenScript } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import {
  eventually,
  onNode,
  startNode,
  type TestNode,
  untilIdle,
  untilLoaded,
} from "../../support/nodes/TestNode.ts"
import { startRelay } from "../../support/servers/Relay.ts"
import {
  type ProxyName,
  printed,
  type ReverseProxy,
  startProxy,
} from "../../support/servers/ReverseProxies.ts"

/** More than the wrong credentials that the tests below send from 127.0.0.1. */
const failureLimit = 15
let node: TestNode
beforeAll(async () => {
  node = await startNode({
    tls: false,
    models: [fakeModel, fakeVoice, listener()],
    settings: { trustedProxies: "127.0.0.1", authFailureLimit: String(failureLimit) },
  })
  await untilLoaded(node, "fake", "fake-voice", "listener")
  await untilCaptionsAreCheap(node, "listener")
})
afterAll(() => node?.stop())

const megabytes = 1024 * 1024
const bearer = (key = node.keys.dev) => ({ authorization: `Bearer ${key}` })
const json = { "content-type": "application/json" }

const chatBody = (steps: Readonly<Record<string, unknown>>, stream = true): string =>
  JSON.stringify({
    model: "fake",
    stream,
    max_tokens: 4_000,
    messages: [{ role: "user", content: script(steps) }],
  })
const speechBody = (steps: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({
    model: "fake-voice",
    voice: "fake",
    response_format: "pcm",
    stream: true,
    input: spokenScript(steps),
  })

/** Twenty seconds of work, of which a test waits for the first pieces only. */
const slowText = { tokens: 100, tokenMs: 200 }
const slowSpeech = { pieces: 100, pieceMs: 200, samples: 240 }
/** Many minutes of work: it never ends by itself during a test. */
const endless = { tokens: 4_000, tokenMs: 200 }

for (const name of ["nginx", "haproxy", "caddy"] satisfies ReadonlyArray<ProxyName>) {
  describe(`behind ${name}`, name === "nginx" ? needs(name) : { ...needs(name), ...inLong }, () =>
    behind(name),
  )
}

function behind(name: ProxyName): void {
  let proxy: ReverseProxy
  beforeAll(async () => {
    proxy = await startProxy(name, node.port)
  })
  afterAll(() => proxy?.stop())

  const post = (path: string, body: string | Uint8Array<ArrayBuffer>, init: RequestInit = {}) =>
    fetch(proxy.base + path, { method: "POST", headers: { ...bearer(), ...json }, body, ...init })
  /** Closed after each test, in every state. */
  const connections: Array<RawConnection> = []
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.destroy()
  })
  const connect = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open(proxy.port)
    connections.push(connection)
    return connection
  }
  const open = (model: string): number => node.gauges(model).open
  const socketAddress = (path: string, token = node.keys.dev): string =>
    `ws://127.0.0.1:${proxy.port}${path}?token=${token}`

  describe("answers", () => {
    it("server-sent events arrive while the engine works on later ones", async () => {
      const stream = new TextStream(await post("/v1/chat/completions", chatBody(slowText)))
      expect((await stream.take(2)).length).toBeLessThan(80)
      expect(open("fake")).toBe(1)
      await stream.leave()
      await untilIdle(node)
    })

    it("streamed speech arrives while the engine speaks later pieces", async () => {
      const response = await post("/v1/audio/speech", speechBody(slowSpeech))
      const reader = response.body!.getReader()
      const { value } = await reader.read()
      expect(value?.length).toBeLessThan(80 * slowSpeech.samples * 2)
      expect(open("fake-voice")).toBe(1)
      await reader.cancel()
      await untilIdle(node)
    })

    it("are whole: every event, and every sample", async () => {
      const steps = { tokens: 300, text: ["ab ", "ü", "\n"] }
      const stream = new TextStream(await post("/v1/chat/completions", chatBody(steps)))
      expect(await stream.toEnd()).toBe("complete")
      expect(textOf(stream.events)).toBe("ab ü\n".repeat(100))
      expect(stream.events.at(-1)).toBe("[DONE]")
      const spoken = { pieces: 20, samples: 4_800 }
      const speech = await post("/v1/audio/speech", speechBody(spoken))
      expect(Buffer.from(await speech.arrayBuffer()).equals(scriptSamples(spoken))).toBe(true)
    })

    it("come over upstream connections that are kept", async () => {
      const relay = await startRelay(node.port)
      const relayed = await startProxy(name, relay.port)
      for (let i = 0; i < 20; i++) {
        const response = await fetch(`${relayed.base}/v1/models`, { headers: bearer() })
        expect([response.status, (await response.text()).length > 0]).toEqual([200, true])
      }
      // HAProxy's health checks have connections of their own.
      expect(relay.opened()).toBeLessThanOrEqual(5)
      await relayed.stop()
      relay.stop()
    })
  })

  describe("uploads", () => {
    const boundary = { "content-type": "multipart/form-data; boundary=b" }
    const prologue = Buffer.from(`--b\r\n${partHead(filePart(""))}`)
    const epilogue = Buffer.from("\r\n--b--\r\n")
    const path = "/v1/audio/transcriptions?model=listener"
    const half = Buffer.alloc(10 * megabytes)
    const lengthOf = (fileBytes: number) => ({
      "content-length": String(prologue.length + fileBytes + epilogue.length),
    })
    /** Bytes of the files that the node has received so far. */
    const taken = (): number =>
      uploads(node.dataDir).reduce((sum, file) => sum + statSync(join(node.dataDir, "uploads", file)).size, 0)

    it.each(["with a length", "in chunks"])("reach the node before they are complete, %s", async (how) => {
      const connection = await connect()
      const chunked = how === "in chunks"
      const framing = chunked ? { "transfer-encoding": "chunked" } : lengthOf(2 * half.length)
      const piece = (bytes: Buffer, last = false): Buffer => {
        if (!chunked) return bytes
        const framed = chunkedBytes([bytes])
        return last ? framed : framed.subarray(0, -"0\r\n\r\n".length)
      }
      await connection.send(requestBytes("POST", path, { ...bearer(), ...boundary, ...framing }))
      await connection.send(Buffer.concat([piece(prologue), piece(half)]))
      // The client sends no more until the node has this.
      await eventually(() => taken() > 9 * megabytes, "half of the upload is at the node")
      await connection.send(Buffer.concat([piece(half), piece(epilogue, true)]))
      const response = await connection.response()
      expect([response.status, response.body.toString()]).toEqual([202, expect.stringContaining("job_id")])
      const { job_id } = jsonOf(response) as { job_id: string }
      await poll({ base: node.base, key: node.keys.dev }, job_id, "DELETE")
      await eventually(() => uploads(node.dataDir).length === 0, "no upload is left")
    })

    it("that the node refuses at once are answered by the node", async () => {
      const headers = { ...bearer("svc_wrong"), ...boundary, ...lengthOf(2 * half.length) }
      const connection = await connect()
      await connection.send(requestBytes("POST", path, headers))
      const sending = connection.send(Buffer.concat([prologue, half, half, epilogue]))
      const response = await connection.response()
      expect([response.status, response.body.toString()]).toEqual([401, '{"detail":"Invalid API key"}'])
      connection.destroy()
      await sending
    })

    it("that are too large are answered by the node", async () => {
      const response = await post("/v1/chat/completions", Buffer.alloc(9_000_000, " "))
      expect([response.status, response.headers.get("content-type")]).toEqual([
        413,
        expect.stringContaining("application/json"),
      ])
    })

    it("in chunks follow each other on one client connection", async () => {
      const connection = await connect()
      const head = { ...bearer(), ...json, "transfer-encoding": "chunked" }
      for (let i = 0; i < 3; i++) {
        const body = chatBody({ tokens: 2, text: "x" }, false)
        const chunks = chunkedBytes([body.slice(0, 10), body.slice(10)])
        await connection.send(Buffer.concat([requestBytes("POST", "/v1/chat/completions", head), chunks]))
        expect((await connection.response()).status).toBe(200)
      }
    })
  })

  describe("WebSockets", () => {
    it("carry a live session both ways", async () => {
      const client = await SocketClient.open(`${socketAddress("/v1/audio/transcriptions/ws")}&model=listener`)
      const pcm = noise(2)
      for (let i = 0; i < 2; i++) {
        speak(client, pcm.subarray(i * 32_000, (i + 1) * 32_000), 640)
        await client.until(() => deltas(client).length > i)
      }
      client.send({ type: "stop" })
      expect(await lastWord(client)).toMatchObject({ type: "transcript.text.done", duration: 2 })
      expect(await client.closed).toEqual({ code: 1000, reason: "" })
    })

    it("carry completions both ways, and end at the node when the client is gone", async () => {
      const client = await SocketClient.open(socketAddress("/v1/completions/ws"))
      const request = (request_id: string, steps: object) => ({
        model: "fake",
        prompt: script({ ...steps }),
        max_tokens: 4_000,
        request_id,
      })
      client.send(request("short", { tokens: 3 }))
      expect(await client.end("short")).toMatchObject({ type: "done" })
      client.send(request("long", endless))
      await client.until(() => client.of("long").length > 1)
      expect(open("fake")).toBe(1)
      client.vanish()
      await untilIdle(node)
    })

    it("pass on the node's reason of a refusal", async () => {
      const refused = await SocketClient.connect(socketAddress("/v1/completions/ws", "svc_wrong"))
      expect(refused).toMatchObject({ status: 401, body: '{"detail":"Invalid API key"}' })
    })
  })

  it("callers have their own addresses, and cannot claim another one", async () => {
    // Each proxy has two addresses of its own, so that the counts of one test do not reach another.
    const [first, second] = { nginx: [11, 12], haproxy: [21, 22], caddy: [31, 32] }[name]!
    const guess = (host: number, forwarded: ReadonlyArray<string>) =>
      statusFrom(`127.0.0.${host}`, proxy.port, {
        ...bearer("svc_wrong"),
        ...(forwarded.length === 0 ? {} : { "x-forwarded-for": forwarded }),
      })
    const statuses: Array<number> = []
    // A failure is forgiven every 60 s / 15: on a slow machine there are more of them than the limit.
    for (let i = 0; statuses.at(-1) !== 429 && i < 10 * failureLimit; i++) {
      statuses.push(await guess(first!, i % 2 === 0 ? [] : [`192.0.2.${i}`, `127.0.0.${(i % 100) + 100}`]))
    }
    expect(statuses.slice(0, failureLimit)).toEqual(new Array(failureLimit).fill(401))
    expect(statuses.at(-1)).toBe(429)
    expect(await guess(second!, [])).toBe(401)
    expect(await guess(second!, [`127.0.0.${first}`])).toBe(401)
    expect(await statusFrom(`127.0.0.${first}`, proxy.port, bearer())).toBe(200)
  })

  it("headers about a caller's place are not taken from callers", async () => {
    const echo = http.createServer(({ headers }, response) => response.end(JSON.stringify(headers)))
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve))
    const before = await startProxy(name, (echo.address() as AddressInfo).port)
    const headers = { "cf-ipcountry": "FR", "cf-iplatitude": "48", "cf-iplongitude": "2", "x-kept": "1" }
    const seen = await (await fetch(before.base, { headers })).json()
    expect(seen).toMatchObject({ "x-kept": "1", "x-forwarded-for": "127.0.0.1" })
    expect(Object.keys(seen as object).filter((header) => header.startsWith("cf-"))).toEqual([])
    await before.stop()
    echo.close()
  })

  describe("a client that leaves", () => {
    it.each([
      ["a stream", true],
      ["an answer that has not begun", false],
    ])("ends %s at the node", async (_, streamed) => {
      const leaving = new AbortController()
      const answer = post("/v1/chat/completions", chatBody(endless, streamed), { signal: leaving.signal })
      answer.catch(() => {})
      await eventually(() => open("fake") === 1, "the engine works on the request")
      if (streamed) await new TextStream(await answer).take(1)
      leaving.abort()
      await untilIdle(node)
    })
  })
}

/** The status of a GET of a caller with this address. */
const statusFrom = (
  localAddress: string,
  port: number,
  headers: Readonly<Record<string, string | ReadonlyArray<string>>>,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, localAddress, path: "/v1/models", agent: false }
    http
      .get({ ...options, headers: headers as http.OutgoingHttpHeaders }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      .once("error", reject)
  })

describe("the printed configurations", () => {
  /** Seconds of every `<directive> <number><unit>` of this name. */
  const secondsOf = (proxy: ProxyName, directive: string): ReadonlyArray<number> =>
    [...printed[proxy].matchAll(new RegExp(`^\\s*${directive}\\s+(\\d+)([smh]);?$`, "gm"))].map(
      ([, count, unit]) => Number(count) * { s: 1, m: 60, h: 3600 }[unit as "s" | "m" | "h"],
    )

  it("let a stream or a WebSocket be silent for an hour", () => {
    expect(secondsOf("nginx", "proxy_read_timeout")).toEqual([3_600])
    for (const side of ["client", "server", "tunnel"]) {
      expect([side, secondsOf("haproxy", `timeout ${side}`)]).toEqual([side, [3_600]])
    }
    // Caddy has no such deadline unless one is set.
    expect(printed.caddy).not.toMatch(/stream_timeout|read_timeout|write_timeout|response_header_timeout/)
  })

  it("give up idle upstream connections before the node closes them after 10 s", () => {
    expect(secondsOf("nginx", "keepalive_timeout")).toEqual([5])
    expect(secondsOf("caddy", "keepalive")).toEqual([5])
  })
})

describe("nginx without `proxy_http_version 1.1`", needs("nginx"), () => {
  it("asks in HTTP/1.0, which Node's server answers and uWebSockets.js refuses with 505", async () => {
    const config = printed.nginx.replace("proxy_http_version 1.1;", "")
    const proxy = await startProxy("nginx", node.port, config)
    const response = await fetch(`${proxy.base}/health`)
    const said = expect.stringContaining(onNode ? "healthy" : "HTTP/1.0")
    expect([response.status, await response.text()]).toEqual([onNode ? 200 : 505, said])
    await proxy.stop()
  })
})
