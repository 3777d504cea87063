// Where traces go, what they contain, and that a collector that is slow, failing or absent costs nothing but records.
import { Effect, Exit, Scope } from "effect"
import * as HttpBody from "effect/http/HttpBody"
import { OtlpSerialization } from "effect/observability"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { RequestContext } from "#http/RequestContext.ts"
import { tracesBody } from "../../src/telemetry/OtlpBodies.ts"
import { makeExporter } from "../../src/telemetry/OtlpExporter.ts"
import { parseOtlp } from "../../src/telemetry/OtlpSettings.ts"
import { type Span, spansOf, traceFrom } from "../../src/telemetry/Trace.ts"
import { eventually } from "../support/nodes/TestNode.ts"
import { type Collector, startCollector } from "../support/servers/Collector.ts"

describe("the settings", () => {
  const parsed = (env: Record<string, string>) => {
    const result = parseOtlp(env)
    if (!("settings" in result)) throw new Error(result.variable)
    return result.settings
  }
  const problem = (env: Record<string, string>) => {
    const result = parseOtlp({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318", ...env })
    return "settings" in result ? undefined : result
  }

  it("are OpenTelemetry's: nothing without an endpoint, and where each signal goes", () => {
    expect(parsed({})).toBe(undefined)
    expect(parsed({ OTEL_SERVICE_NAME: "x" })).toBe(undefined)
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318/" }
    expect(parsed(base)).toMatchObject({
      tracesUrl: "http://127.0.0.1:4318/v1/traces",
      logsUrl: "http://127.0.0.1:4318/v1/logs",
      resource: { "service.name": "edgewise" },
      batchSize: 512,
      queueSize: 2_048,
    })
    expect(parsed({ ...base, OTEL_SDK_DISABLED: "true" })).toBe(undefined)
    expect(parsed({ ...base, OTEL_LOGS_EXPORTER: "none" })).toMatchObject({ logsUrl: undefined })
    expect(parsed({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://x.test/own" })).toMatchObject({
      tracesUrl: "https://x.test/own",
      logsUrl: undefined,
    })
    const headers = { OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20abc, x-tenant=a" }
    expect(parsed({ ...base, ...headers, OTEL_EXPORTER_OTLP_LOGS_HEADERS: "x-tenant=b" })).toMatchObject({
      tracesHeaders: { authorization: "Bearer abc", "x-tenant": "a" },
      logsHeaders: { authorization: "Bearer abc", "x-tenant": "b" },
    })
    expect(
      parsed({ ...base, OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test,service.name=a" })?.resource,
    ).toEqual({
      "service.name": "a",
      "deployment.environment": "test",
    })
  })

  it.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@127.0.0.1"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "soon"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "secret"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "x=a%0d%0asecret"],
    ["OTEL_TRACES_EXPORTER", "zipkin"],
    ["OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0"],
  ])("%s=%s is refused, without its secrets", (variable, value) => {
    const found = problem({ [variable]: value })
    expect(found?.variable).toBe(variable)
    expect(JSON.stringify(found)).not.toContain("secret")
  })
})

describe("a trace", () => {
  it("is the caller's where it names one as W3C Trace Context says, and else the node's own", () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4736"
    const parent = "00f067aa0ba902b7"
    expect(traceFrom(`00-${id}-${parent}-01`)).toMatchObject({
      traceId: id,
      parentSpanId: parent,
      sampled: true,
    })
    expect(traceFrom(`00-${id}-${parent}-00`).sampled).toBe(false)
    expect(traceFrom(`cc-${id}-${parent}-01-more`).traceId).toBe(id)
    const bad = [
      undefined,
      "",
      `ff-${id}-${parent}-01`,
      `00-${"0".repeat(32)}-${parent}-01`,
      `00-${id}-${"0".repeat(16)}-01`,
    ]
    for (const text of [...bad, `00-${id.toUpperCase()}-${parent}-01`, `00-${id}-${parent}-01x`]) {
      const trace = traceFrom(text)
      expect([trace.parentSpanId, trace.sampled]).toEqual([undefined, true])
      expect(trace.traceId).not.toBe(id)
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        const { spanId, traceId } = traceFrom(text)
        expect([traceId, spanId].join(" ")).toMatch(/^[0-9a-f]{32} [0-9a-f]{16}$/)
      }),
    )
  })

  it("has a span for each step that the request took, inside the request's", () => {
    const notes = new RequestContext(undefined, () => "1")
    const { startedMs } = notes
    notes.authMs = 1
    notes.accepted(startedMs + 2, "m")
    notes.queueMs = 3
    notes.firstUnitMs = 9
    const ended = { notes, method: "POST", route: "/v1/x", status: 200, endedMs: startedMs + 20 }
    const spans = spansOf(ended)
    expect(spans.map(({ name }) => name)).toEqual(["POST /v1/x", "auth", "queue", "first unit", "engine"])
    const [request, ...steps] = spans
    for (const step of steps) {
      expect([step.traceId, step.parentSpanId]).toEqual([request!.traceId, request!.spanId])
      expect(BigInt(step.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(request!.startTimeUnixNano))
      expect(BigInt(step.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(request!.endTimeUnixNano))
    }
    const lengthMs = ({ endTimeUnixNano, startTimeUnixNano }: Span) =>
      Math.round(Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6)
    expect(spans.map(lengthMs)).toEqual([20, 1, 3, 4, 15])
    const refused = new RequestContext(undefined, () => "2")
    expect(spansOf({ ...ended, notes: refused, status: 503 })).toMatchObject([{ status: { code: 2 } }])
  })
})

describe("the exporter", () => {
  let collector: Collector
  let scope: Scope.Closeable
  const counts = () => ({ otlpSent: { traces: 0, logs: 0 }, otlpDropped: { traces: 0, logs: 0 } })
  beforeEach(async () => {
    collector = await startCollector()
    scope = Scope.makeUnsafe()
  })
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  afterEach(async () => {
    await close()
    await collector.stop()
  })
  const make = (counted: ReturnType<typeof counts>, more: object = {}) => {
    const settings = { url: `${collector.url}/v1/traces`, headers: { "x-key": "k" }, timeoutMs: 30_000 }
    const sizes = { delayMs: 60_000, batchSize: 10, queueSize: 25, ...more }
    const encode = (batch: ReadonlyArray<number>) => HttpBody.jsonUnsafe(batch)
    return Effect.runPromise(
      Scope.provide(makeExporter("traces", { ...settings, ...sizes }, counted, encode), scope),
    )
  }
  const numbers = () => collector.received.flatMap(({ text }) => JSON.parse(text) as Array<number>)

  it("sends a full batch at once and the rest at the end, each record once", async () => {
    const counted = counts()
    const exporter = await make(counted)
    for (let n = 0; n < 12; n++) exporter.push(n)
    await eventually(() => collector.received.length > 0, "a batch came")
    expect(collector.received[0]).toMatchObject({ path: "/v1/traces", headers: { "x-key": "k" } })
    await close()
    expect(numbers()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(counted.otlpSent.traces).toBe(12)
  })

  it("tries again where it is asked to, and not where it is refused", async () => {
    const counted = counts()
    collector.statuses.push(503)
    const exporter = await make(counted)
    for (let n = 0; n < 10; n++) exporter.push(n)
    await eventually(() => counted.otlpSent.traces === 10, "the second attempt")
    collector.statuses.push(400)
    for (let n = 0; n < 10; n++) exporter.push(n)
    await eventually(() => counted.otlpDropped.traces === 10, "it is counted")
    expect(collector.received).toHaveLength(1)
  })

  it("holds a bounded number for a collector that is gone, counts the others, and does not keep a stop waiting", async () => {
    await collector.stop()
    const counted = counts()
    const exporter = await make(counted)
    for (let n = 0; n < 1_000; n++) exporter.push(n)
    expect(counted.otlpDropped.traces).toBe(1_000 - 25)
    await close()
    expect(counted).toMatchObject({ otlpSent: { traces: 0 }, otlpDropped: { traces: 1_000 } })
  })

  const bodyOf = async (layer: typeof OtlpSerialization.layerJson) => {
    const notes = new RequestContext("my-id", () => "1")
    const serialization = await Effect.runPromise(Effect.provide(OtlpSerialization.OtlpSerialization, layer))
    const body = tracesBody({ resource: { "service.name": "edgewise" }, serialization })([
      { notes, method: "GET", route: "/health", status: 200, endedMs: notes.startedMs },
    ])
    if (body._tag !== "Uint8Array") throw new Error("a body in memory")
    return body
  }

  it("makes a body that is OTLP's JSON", async () => {
    const body = await bodyOf(OtlpSerialization.layerJson)
    expect(body.contentType).toBe("application/json")
    expect(JSON.parse(new TextDecoder().decode(body.body))).toMatchObject({
      resourceSpans: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "edgewise" } }] },
          scopeSpans: [{ scope: { name: "edgewise" }, spans: [{ name: "GET /health", kind: 2 }] }],
        },
      ],
    })
  })

  it("makes a body that is OTLP's protobuf", async () => {
    const body = await bodyOf(OtlpSerialization.layerProtobuf)
    expect(body.contentType).toBe("application/x-protobuf")
    // ExportTraceServiceRequest: field 1, length-delimited; the span's name stands in it as UTF-8.
    expect(body.body[0]).toBe(0x0a)
    expect(Buffer.from(body.body).includes("GET /health")).toBe(true)
  })
})
