// The check that watches all contract tests (test/support/wire): a listener that sends what no API declares is noticed, by
// status, field, header, event, frame and close code; what is declared is not.
import { once } from "node:events"
import net from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { checked, wireProblems } from "../../support/wire/WireCheck.ts"
import { unwatchPort, watchPort } from "../../support/wire/WireTap.ts"

/** Sends the same bytes to every connection once it has a request. */
let answer: Buffer = Buffer.alloc(0)
const server = net.createServer((socket) => {
  socket.on("error", () => {})
  socket.once("data", () => socket.end(answer))
})
let port = 0

beforeAll(async () => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  port = typeof address === "object" && address !== null ? address.port : 0
  watchPort(port, "edge")
})
afterAll(() => {
  unwatchPort(port)
  server.close()
})

const reply = (status: string, body: string, headers: Readonly<Record<string, string>> = {}): Buffer => {
  const all = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`HTTP/1.1 ${status}\r\n${lines.join("\r\n")}\r\n\r\n${body}`)
}

const text = (frame: object | string): Buffer => {
  const payload = Buffer.from(typeof frame === "string" ? frame : JSON.stringify(frame))
  return Buffer.concat([Buffer.from([0x81, 126, payload.length >> 8, payload.length & 255]), payload])
}
const close = (code: number, reason: string): Buffer => {
  const payload = Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)])
  return Buffer.concat([Buffer.from([0x88, payload.length]), payload])
}
const upgraded = (...frames: ReadonlyArray<Buffer>): Buffer =>
  Buffer.concat([
    Buffer.from("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"),
    ...frames,
  ])

const problemsOf = async (method: string, path: string, bytes: Buffer): Promise<string> => {
  answer = bytes
  const connection = await RawConnection.open(port)
  await connection.send(requestBytes(method, path))
  await connection.closed
  return wireProblems().join("\n")
}

const list = { object: "list", data: [] }
const delta = {
  type: "transcript.text.delta",
  delta: "a",
  rev: 1,
  op: "append",
  stable_chars: 0,
  audio_ms: 10,
}
const chunk = (delta: object) =>
  `data: ${JSON.stringify({ id: "a", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`
const events = { "content-type": "text/event-stream" }

describe("declared", () => {
  it.each([
    ["a reply", "GET", "/v1/models", reply("200 OK", JSON.stringify(list))],
    [
      "an error",
      "GET",
      "/v1/models",
      reply("429 Too Many Requests", '{"detail":"a"}', { "retry-after": "1" }),
    ],
    ["an unknown path", "GET", "/nowhere", reply("404 Not Found", '{"detail":"Not Found"}')],
    [
      "events",
      "POST",
      "/v1/chat/completions",
      reply("200 OK", `${chunk({ content: "a" })}data: [DONE]\n\n`, events),
    ],
    ["frames", "GET", "/v1/audio/transcriptions/ws?token=a", upgraded(text(delta), close(1000, ""))],
  ])("%s", async (_, method, path, bytes) => {
    const before = { ...checked }
    expect(await problemsOf(method, path, bytes)).toBe("")
    expect(checked.replies).toBe(before.replies + 1)
  })
})

describe("not declared", () => {
  it.each([
    [
      "a status",
      "GET",
      "/v1/models",
      reply("402 Payment Required", '{"detail":"a"}'),
      "the status is not declared",
    ],
    ["a field", "GET", "/v1/models", reply("200 OK", JSON.stringify({ ...list, more: 1 })), "more"],
    ["a missing field", "GET", "/v1/models", reply("200 OK", '{"object":"list"}'), "data"],
    [
      "a field of an error",
      "GET",
      "/v1/models",
      reply("429 Too Many Requests", '{"detail":"a","why":"b"}'),
      "why",
    ],
    [
      "a header",
      "GET",
      "/v1/models",
      reply("200 OK", JSON.stringify(list), { "x-more": "1" }),
      "the header x-more",
    ],
    [
      "a content type",
      "GET",
      "/v1/models",
      reply("200 OK", "a", { "content-type": "text/plain" }),
      "the content type text/plain",
    ],
    ["an event", "POST", "/v1/chat/completions", reply("200 OK", chunk({ text: "a" }), events), "text"],
    ["a stream", "GET", "/v1/models", reply("200 OK", chunk({}), events), "no events are declared"],
    ["a frame's field", "GET", "/v1/audio/transcriptions/ws", upgraded(text({ ...delta, more: 1 })), "more"],
    ["a close code", "GET", "/v1/audio/transcriptions/ws", upgraded(close(4000, "")), "close 4000"],
    [
      "a close reason",
      "GET",
      "/v1/audio/transcriptions/ws",
      upgraded(close(4008, "late")),
      'the reason "late"',
    ],
  ])("%s", async (_, method, path, bytes, problem) => {
    expect(await problemsOf(method, path, bytes)).toContain(problem)
  })
})
