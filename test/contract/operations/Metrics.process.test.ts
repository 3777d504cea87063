// GET /metrics of a real node: the exact format, every figure from real traffic, and no label value chosen by a caller.
import { once } from "node:events"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { TextStream } from "../../support/clients/TextStream.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"
import { type FamilyText, parseExposition } from "../../support/process/PrometheusGrammar.ts"

let node: TestNode
let operator: string
beforeAll(async () => {
  node = await startNode({
    models: [
      { ...fakeModel, options: { slots: 2 } },
      { ...fakeVoice, id: "voice" },
      listener({}, { id: "ear" }),
    ],
  })
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  operator = (await node.run(made)).apiKey
  await untilLoaded(node, "fake")
})
afterAll(() => node.stop())

const scrape = async () => parseExposition(await (await node.fetch("/metrics")).text())
const family = (all: ReadonlyArray<FamilyText>, name: string): FamilyText => {
  const found = all.find((one) => one.name === `edgewise_${name}`)
  if (found === undefined) throw new Error(`no family ${name}`)
  return found
}
/** The value of one series; 0 where it is not there. */
const value = (all: ReadonlyArray<FamilyText>, name: string, labels: Record<string, string>, suffix = "") =>
  family(all, name).series.find(
    (one) =>
      one.name === `edgewise_${name}${suffix}` &&
      Object.entries(labels).every(([label, text]) => one.labels[label] === text),
  )?.value ?? 0

const chat = (content: string, more: object = {}) => ({
  model: "fake",
  messages: [{ role: "user", content }],
  ...more,
})
const scripted = (script: object) => `fake:${JSON.stringify(script)}`

it("is the text format, to the letter", async () => {
  const response = await node.fetch("/metrics")
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
  const all = parseExposition(await response.text())
  expect(all.length).toBeGreaterThan(30)
  for (const { help, name } of all) {
    expect(name).toMatch(/^edgewise_[a-z_]+$/)
    expect(help).toMatch(/^.{3,200}$/)
  }
  for (const { name, type } of all)
    expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"])
})

it("counts a streamed answer: first token, gaps, wait, tokens, route and status", async () => {
  const before = await scrape()
  const reply = await node.post(
    "/v1/chat/completions",
    chat(scripted({ tokens: 12, tokenMs: 1, signalAt: 6 }), {
      stream: true,
      stream_options: { include_usage: true },
    }),
  )
  // In two parts at least, between which there is a gap.
  const stream = new TextStream(reply)
  await stream.take(2)
  process.kill(node.gauges("fake").pid!, "SIGUSR2")
  await stream.toEnd()
  const [last = "{}"] = stream.events.slice(-2)
  const { usage } = JSON.parse(last) as { readonly usage: Record<string, number> }
  const { completion_tokens, prompt_tokens } = usage
  await untilIdle(node)
  const after = await scrape()
  const grew = (name: string, labels: Record<string, string>, suffix = "") =>
    value(after, name, labels, suffix) - value(before, name, labels, suffix)
  expect(grew("time_to_first_token_ms", { model: "fake" }, "_count")).toBe(1)
  expect(grew("queue_wait_ms", { model: "fake" }, "_count")).toBe(1)
  const gaps = grew("inter_chunk_gap_ms", { model: "fake" }, "_count")
  expect(gaps).toBeGreaterThan(0)
  expect(gaps).toBeLessThan(12)
  expect(grew("output_tokens_total", { model: "fake" })).toBe(completion_tokens)
  expect(grew("input_tokens_total", { model: "fake" })).toBe(prompt_tokens)
  expect(grew("model_requests_total", { model: "fake", outcome: "done" })).toBe(1)
  const route = { route: "/v1/chat/completions" }
  expect(grew("http_requests_total", { ...route, method: "POST", status: "200" })).toBe(1)
  expect(grew("http_request_duration_ms", route, "_count")).toBe(1)
})

it("counts what went wrong: cancelled, queued, refused, and the slots in use meanwhile", async () => {
  const before = await scrape()
  const leaving = new AbortController()
  const long = chat(scripted({ tokens: 1_000_000, tokenMs: 5 }), { stream: true, max_tokens: 4096 })
  const open = await Promise.all(
    [1, 2].map(() => node.post("/v1/chat/completions", long, { signal: leaving.signal })),
  )
  const third = node.post("/v1/chat/completions", chat("hi")).catch(() => undefined)
  await eventually(() => node.gauges("fake").waiting === 1, "one waits")
  const during = await scrape()
  expect(value(during, "slots", { model: "fake" })).toBe(2)
  expect(value(during, "slots_busy", { model: "fake" })).toBe(2)
  expect(value(during, "slots_free", { model: "fake" })).toBe(0)
  expect(value(during, "requests_waiting", { model: "fake" })).toBe(1)
  leaving.abort()
  await Promise.allSettled(open.map((one) => one.text()))
  expect((await third)?.status).toBe(200)
  await untilIdle(node)
  const after = await scrape()
  const grew = (name: string, labels: Record<string, string>, suffix = "") =>
    value(after, name, labels, suffix) - value(before, name, labels, suffix)
  expect(grew("cancel_to_idle_ms", { model: "fake" }, "_count")).toBe(2)
  expect(grew("model_requests_total", { model: "fake", outcome: "cancelled" })).toBe(2)
  expect(grew("client_aborts_total", {})).toBe(2)
  expect(grew("queue_wait_ms", { model: "fake" }, "_sum")).toBeGreaterThan(0)
})

it("counts loads, unloads and restarts, across loads", async () => {
  await node.post("/v1/models/unload", { model_name: "fake" }, { key: operator })
  await node.post("/v1/models/load", { model_name: "fake" }, { key: operator })
  const all = await scrape()
  expect(value(all, "unload_to_freed_ms", { model: "fake" }, "_count")).toBe(1)
  expect(value(all, "model_load_ms", { model: "fake" }, "_count")).toBe(2)
  expect(value(all, "model_requests_total", { model: "fake", outcome: "done" })).toBeGreaterThan(0)
  process.kill(node.gauges("fake").pid!, "SIGKILL")
  await eventually(
    async () => value(await scrape(), "engine_restarts_total", { model: "fake" }) === 1,
    "a restart",
  )
  await untilLoaded(node, "fake")
})

it("knows a speech stream's first audio, and a live session's lag", async () => {
  const speech = await node.post("/v1/audio/speech", {
    model: "voice",
    input: "Good morning to you.",
    voice: "fake",
    response_format: "pcm",
    stream: true,
  })
  expect(speech.status).toBe(200)
  await speech.arrayBuffer()
  const socket = new WebSocket(
    `${node.socketBase}/v1/audio/transcriptions/ws?model=ear&token=${node.keys.dev}`,
  )
  await once(socket as never, "open")
  const live = await scrape()
  expect(value(live, "live_sessions", { model: "ear" })).toBe(1)
  expect(value(live, "web_sockets", {})).toBe(1)
  expect(value(live, "http_requests_total", { route: "/v1/audio/transcriptions/ws", status: "101" })).toBe(1)
  const said: Array<string> = []
  socket.addEventListener("message", ({ data }) => said.push(String(data)))
  socket.send(new Uint8Array(64_000))
  socket.send('{"type":"stop"}')
  await eventually(() => said.some((event) => event.includes("transcript.text.done")), "the last word")
  socket.close()
  await eventually(async () => value(await scrape(), "live_sessions", { model: "ear" }) === 0, "it has ended")
  await untilIdle(node)
  const all = await scrape()
  expect(value(all, "time_to_first_audio_ms", { model: "voice" }, "_count")).toBe(1)
  expect(value(all, "audio_seconds_out_total", { model: "voice" })).toBeGreaterThan(0)
  expect(value(all, "live_delta_lag_ms", { model: "ear" }, "_count")).toBeGreaterThan(0)
  expect(value(all, "audio_seconds_in_total", { model: "ear" })).toBe(2)
})

it("has no label that a caller chose: strange paths, methods, models and keys add no series", async () => {
  const asked = async () => {
    for (const path of ["/unknown", "/v1/secret?token=abc", "/v1/models/x", "/v1/%00"]) await node.fetch(path)
    await node.fetch("/v1/models", { method: "PURGE" })
    await node.post("/v1/chat/completions", chat("x", { model: "invented" }))
    await node.post("/v1/chat/completions", chat("x"), { key: "svc_unknown" })
    await scrape()
    return (await scrape()).flatMap(({ series }) => series)
  }
  const first = await asked()
  const second = await asked()
  expect(second.length).toBe(first.length)
  const words = new Set(second.flatMap(({ labels }) => Object.values(labels)))
  for (const word of ["invented", "/unknown", "abc", "PURGE", "svc_unknown", "dev"])
    expect(words).not.toContain(word)
  for (const word of ["other", "fake", "/v1/models"]) expect(words).toContain(word)
})

it("does not hold the event loop: a hundred scrapes while a stream runs", async () => {
  const script = scripted({ tokens: 1_000_000, tokenMs: 5 })
  const leaving = new AbortController()
  const reply = await node.post("/v1/chat/completions", chat(script, { stream: true, max_tokens: 4096 }), {
    signal: leaving.signal,
  })
  const sizes = await Promise.all(
    Array.from({ length: 100 }, async () => (await (await node.fetch("/metrics")).text()).length),
  )
  expect(Math.max(...sizes)).toBeLessThan(200_000)
  leaving.abort()
  await reply.text().catch(() => "")
  await untilIdle(node)
})
