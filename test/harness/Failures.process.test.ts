// Servers that refuse, lie, leave or never end: each failure is counted by its cause, and none ends the run.
import type { ServerResponse } from "node:http"
import { afterEach, describe, expect, it } from "vitest"
import { closeConnections } from "#harness/client/Exchange.ts"
import { selfReport } from "#harness/client/SelfReport.ts"
import { sizedPrompts } from "#harness/data/Prompts.ts"
import type { Issue } from "#harness/load/Drive.ts"
import { request } from "#harness/Requests.ts"
import { freePort } from "../support/servers/FreePort.ts"
import { type Answer, chunkOf, type ScriptedServer, scriptedServer, sse } from "./ScriptedServer.ts"

/** A test may start several. */
const servers: Array<ScriptedServer> = []
const serving = async (answers: Parameters<typeof scriptedServer>[0]): Promise<ScriptedServer> => {
  const server = await scriptedServer(answers)
  servers.push(server)
  return server
}
afterEach(async () => {
  closeConnections()
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

const plans = { text: { model: "m", prompts: sizedPrompts(5, 1), maxTokens: 8, temperature: 0, fields: {} } }

const issue = (signal = new AbortController().signal): Issue => ({
  index: 0,
  scheduledAtMs: performance.now(),
  client: 0,
  signal,
})

const ask = async (answer: Answer, timeoutMs = 20_000, signal?: AbortSignal) => {
  const server = await serving({ "/v1/chat/completions": answer })
  const target = { ...server.target, timeoutMs }
  return request({ target, plans, shares: { text: 1 }, seed: 1 }, "text", { usage: true }, issue(signal))
}

/** An event stream without an event so far. */
const begun = (response: ServerResponse): ServerResponse => {
  sse(response)
  return response
}

const cut = (response: ServerResponse): void => {
  response.write(chunkOf({ content: "a" }))
  response.destroy()
}

const cases: ReadonlyArray<readonly [string, Answer, string, string]> = [
  [
    "a refused key",
    (_, r) => r.writeHead(401).end('{"error":{"message":"no such key"}}'),
    "401",
    "no such key",
  ],
  ["a refusal as text", (_, r) => r.writeHead(503).end("busy\u001b[31m\nnow"), "503", "busy [31m now"],
  ["a refusal without a body", (_, r) => r.writeHead(500).end(), "500", "status 500"],
  ["an endless refusal", (_, r) => void endless(r.writeHead(500), "x".repeat(1_000)), "500", "xxx"],
  [
    "a page",
    (_, r) => r.writeHead(200, { "content-type": "text/html" }).end("<html>"),
    "wrong reply",
    "text/html",
  ],
  ["garbage", (_, r) => begun(r).end("\u0000\u0001garbage\n\n"), "wrong reply", "no server-sent events"],
  ["garbage in an event", (_, r) => begun(r).end("data: {oops\n\n"), "wrong reply", "not JSON"],
  [
    "an end in the middle",
    (_, r) => begun(r).end(chunkOf({ content: "a" })),
    "closed early",
    "finish_reason",
  ],
  ["a connection that is cut", (_, r) => cut(begun(r)), "closed early", "connection"],
  [
    "an error in the stream",
    (_, r) => begun(r).end('data: {"error":{"message":"lost"}}\n\n'),
    "error event",
    "lost",
  ],
  ["an endless event", (_, r) => void endless(begun(r), "x".repeat(65_536)), "too large", "4 MB"],
  [
    "an endless reply",
    (_, r) => void endless(begun(r), chunkOf({ content: "a" }).repeat(500)),
    "too large",
    "without an end",
  ],
]

/** Writes for as long as the client reads. */
const endless = (response: ServerResponse, part: string): void => {
  const write = () => {
    while (!response.destroyed && response.write(part));
    if (!response.destroyed) response.once("drain", write)
  }
  write()
}

it.each(cases)("%s is one failure with its cause", async (_, answer, key, detail) => {
  const { failure, measured } = await ask(answer)
  expect(measured).toBeUndefined()
  expect(failure?.key).toBe(key)
  expect(failure?.detail).toContain(detail)
  expect(failure?.detail).not.toContain("\n")
})

it("a server that says nothing is a timeout, and one that is still busy at the end is unfinished", async () => {
  expect((await ask(() => {}, 200)).failure?.key).toBe("timeout")
  const ending = new AbortController()
  const answer = ask(() => ending.abort(), 20_000, ending.signal)
  expect((await answer).failure?.key).toBe("unfinished")
})

it("a port where nothing listens is unreachable", async () => {
  const base = `http://127.0.0.1:${await freePort()}`
  const { failure } = await request(
    { target: { base, headers: {}, timeoutMs: 20_000 }, plans, shares: { text: 1 }, seed: 1 },
    "text",
    { usage: true },
    issue(),
  )
  expect(failure).toEqual({ key: "unreachable", detail: `nothing listens at ${base}` })
})

describe("the first look", () => {
  it("reads models, build and version, and survives servers without them", async () => {
    const server = await serving({
      "/v1/models": (_, r) =>
        r
          .writeHead(200, { server: "stock", "x-ratelimit-limit": "90" })
          .end('{"data":[{"id":"a"},{"id":7},null,{"id":"b\\n"}]}'),
      "/props": (_, r) => r.end('{"build_info":"b1","total_slots":4}'),
      "/openapi.json": (_, r) => r.end("[]"),
    })
    expect(await selfReport(server.target, new AbortController().signal)).toEqual({
      server: "stock",
      models: ["a", "b"],
      build: "b1",
      slots: 4,
      requestLimit: 90,
    })
  })

  it("fails where the key is refused", async () => {
    const server = await serving({ "/v1/models": (_, r) => r.writeHead(401).end('{"detail":"who?"}') })
    await expect(selfReport(server.target, new AbortController().signal)).rejects.toThrow("who?")
  })
})
