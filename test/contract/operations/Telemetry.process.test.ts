// Logs and traces of a node as a process: JSON logs with request ids, a line for each answer, traces and logs at a
// collector, and in none of them texts or credentials of a caller.
import { afterAll, beforeAll, expect, it } from "vitest"
import { type NodeProcess, startProcess } from "../../support/nodes/NodeProcess.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { type Collector, type Span, startCollector } from "../../support/servers/Collector.ts"

let collector: Collector
let node: NodeProcess
beforeAll(async () => {
  collector = await startCollector()
  node = await startProcess({
    env: {
      EDGEWISE_LOG: "json",
      EDGEWISE_ACCESS_LOG: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=acme",
      OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_SERVICE_NAME: "edge-1",
    },
  })
})
afterAll(async () => {
  await node.dispose()
  await collector.stop()
})

interface Line {
  readonly message: string
  readonly level: string
  readonly timestamp: string
  readonly request_id?: string
  readonly annotations: Readonly<Record<string, unknown>>
}
const lines = () =>
  node
    .stderr()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line)
const lineOf = (id: string) => lines().find((line) => line.message === "request" && line.request_id === id)

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
const parent = "00f067aa0ba902b7"
const prompt = "MyPrivatePrompt"
const ask = (headers: Record<string, string>, body: object = {}) =>
  fetch(`${node.base}/v1/chat/completions?token=MyQuerySecret`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: prompt }], ...body }),
  })
const valueOf = ({ attributes }: Span, key: string) => {
  const value = attributes.find((one) => one.key === key)?.value
  return value?.stringValue ?? value?.intValue
}

it("writes a line for each answer, with its id, and spans in the caller's trace", async () => {
  const reply = await ask({ "x-request-id": "my-request-1", traceparent: `00-${trace}-${parent}-01` })
  expect(reply.status).toBe(200)
  const answer = await reply.text()
  await eventually(() => lineOf("my-request-1") !== undefined, "the line")
  expect(lineOf("my-request-1")).toMatchObject({
    level: "INFO",
    annotations: { method: "POST", route: "/v1/chat/completions", status: 200, model: "fake" },
  })
  const mine = () => collector.spans().filter(({ traceId }) => traceId === trace)
  await eventually(() => mine().length >= 5, "the spans")
  const spans = mine()
  expect(spans.map(({ name }) => name).sort()).toEqual(
    ["POST /v1/chat/completions", "auth", "engine", "first unit", "queue"].sort(),
  )
  const request = spans.find(({ kind }) => kind === 2)!
  expect(request.parentSpanId).toBe(parent)
  expect(valueOf(request, "edgewise.request_id")).toBe("my-request-1")
  expect(valueOf(request, "http.response.status_code")).toBe("200")
  for (const span of spans) if (span !== request) expect(span.parentSpanId).toBe(request.spanId)
  expect(collector.received[0]?.headers).toMatchObject({
    "x-tenant": "acme",
    "content-type": "application/json",
  })
  expect(collector.received[0]?.text).toContain("edge-1")
  const told = node.stderr() + JSON.stringify(collector.received)
  for (const secret of [prompt, "MyQuerySecret", node.devKey, node.devKey.slice(4), answer.slice(-60)])
    expect(told).not.toContain(secret)
})

it("makes a trace of its own where the caller has none, none where the caller wants none, and refusals are traced too", async () => {
  await (await ask({ "x-request-id": "unsampled", traceparent: `00-${"a".repeat(32)}-${parent}-00` })).text()
  await (await ask({ "x-request-id": "refused", authorization: "Bearer svc_wrong" })).text()
  await (await ask({ "x-request-id": "own" })).text()
  const of = (id: string) => collector.spans().filter((span) => valueOf(span, "edgewise.request_id") === id)
  await eventually(() => of("own").length === 1, "the last one's span")
  expect(of("refused")).toHaveLength(1)
  expect(valueOf(of("refused")[0]!, "http.response.status_code")).toBe("401")
  expect(of("unsampled")).toEqual([])
  expect(of("own")[0]?.parentSpanId).toBe(undefined)
  await eventually(() => lineOf("unsampled") !== undefined && lineOf("refused") !== undefined, "their lines")
  const metrics = await (await fetch(`${node.base}/metrics`)).text()
  expect(metrics).toMatch(/edgewise_otlp_sent_total\{signal="traces"\} [1-9]/)
  expect(metrics).toMatch(/edgewise_otlp_dropped_total\{signal="traces"\} 0/)
  expect(metrics).toMatch(/edgewise_log_lines_dropped_total 0/)
})

it("sends its own log records to the collector, and ends in order: the last line is the last", async () => {
  node.signal("SIGTERM")
  expect(await node.exited).toEqual([0, null])
  const said = lines().filter((line) => line.message !== "request")
  expect(said.map(({ message }) => message)).toEqual(expect.arrayContaining(["draining", "stopped"]))
  expect(lines().at(-1)?.message).toBe("stopped")
  expect(collector.logs().map(({ body }) => body.stringValue)).toEqual(
    expect.arrayContaining(["draining", "stopped"]),
  )
})
