// Traces of background work: jobs, live sessions, generations on a socket. They are in the caller's trace, with
// durations, ids and numbers only, before and after a crash.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { longWav } from "../../support/audio/SpeechClips.ts"
import { listener, noise, speak } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { path, poll, type Target, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { type NodeProcess, startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"
import { type Collector, type Span, startCollector } from "../../support/servers/Collector.ts"

type Bytes = Uint8Array<ArrayBuffer>

let collector: Collector
let node: NodeProcess
const models = [fakeModel, listener({}, { id: "listener" })]
const start = (dataDir?: string, callMs = 0) =>
  startProcess({
    models: [...models, listener({ callMs }, { id: "slow" })],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_LOGS_EXPORTER: "none",
      OTEL_BSP_SCHEDULE_DELAY: "50",
      ...(dataDir === undefined ? {} : { EDGEWISE_DATA_DIR: dataDir }),
    },
  })
beforeAll(async () => {
  collector = await startCollector()
  node = await start()
})
afterAll(async () => {
  await node.dispose()
  await collector.stop()
})

const parent = "00f067aa0ba902b7"
let traces = 0
/** A trace of its own for each test. */
const newTrace = (sampled = true) => {
  const trace = (++traces).toString(16).padStart(32, "a")
  return { trace, traceparent: `00-${trace}-${parent}-${sampled ? "01" : "00"}` }
}
const of = (trace: string, name?: string): ReadonlyArray<Span> =>
  collector.spans().filter((span) => span.traceId === trace && (name === undefined || span.name === name))
const untilSpan = async (trace: string, name: string, count = 1): Promise<Span> => {
  await eventually(() => of(trace, name).length >= count, `${count} of ${name}`)
  return of(trace, name)[0]!
}
const factsOf = ({ attributes }: Span): Readonly<Record<string, string | number>> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)] as const),
  )
const childrenOf = ({ spanId }: Span) =>
  collector
    .spans()
    .filter(({ parentSpanId }) => parentSpanId === spanId)
    .map(({ name }) => name)
    .toSorted()
const lengthMs = ({ endTimeUnixNano, startTimeUnixNano }: Span) =>
  Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6
const told = () => JSON.stringify(collector.received)

const wav = longWav(5) as Bytes
const target = (on: NodeProcess): Target => ({ base: on.base, key: on.devKey })
const submitTo = async (on: NodeProcess, traceparent: string, model = "listener"): Promise<string> => {
  const form = new FormData()
  form.append("file", new Blob([wav]), "MyFileName.wav")
  const response = await fetch(`${on.base}${path}?model=${model}&prompt=MyPrivatePrompt`, {
    method: "POST",
    headers: { authorization: `Bearer ${on.devKey}`, traceparent },
    body: form,
  })
  const { job_id } = (await response.json()) as { job_id: string }
  expect(response.status).toBe(202)
  return job_id
}

describe("a transcription job", () => {
  it("is a child of the request that submitted it, with its decoding, hearing and settling", async () => {
    const { trace, traceparent } = newTrace()
    const id = await submitTo(node, traceparent)
    const { body } = await untilDone(target(node), id)
    const job = await untilSpan(trace, "transcription job")
    const request = await untilSpan(trace, `POST ${path}`)
    expect(request.parentSpanId).toBe(parent)
    expect(job.parentSpanId).toBe(request.spanId)
    expect(job.kind).toBe(5)
    expect(factsOf(job)).toEqual({
      "edgewise.job_id": id,
      "edgewise.outcome": "completed",
      "edgewise.audio_from_ms": 0,
      "edgewise.audio_ms": 5_000,
      "edgewise.model": "listener",
    })
    expect(childrenOf(job)).toEqual(["decode", "engine", "first unit", "queue", "settle"])
    for (const step of of(trace).filter(({ parentSpanId }) => parentSpanId === job.spanId)) {
      expect(BigInt(step.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(job.startTimeUnixNano))
      expect(BigInt(step.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(job.endTimeUnixNano))
    }
    for (const secret of ["MyFileName", "MyPrivatePrompt", String(body.text)]) {
      expect(told()).not.toContain(secret)
    }
  })

  it("has a span for an invalid file, and none where its caller wants no trace", async () => {
    const none = newTrace(false)
    await untilDone(target(node), await submitTo(node, none.traceparent))
    const { trace, traceparent } = newTrace()
    const form = new FormData()
    form.append("file", new Blob([Buffer.from("not audio at all")]), "x.wav")
    const response = await fetch(`${node.base}${path}?model=listener`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.devKey}`, traceparent },
      body: form,
    })
    expect(response.status).toBe(202)
    const job = await untilSpan(trace, "transcription job")
    expect(factsOf(job)).toMatchObject({ "edgewise.outcome": "failed", "edgewise.audio_ms": 0 })
    expect(childrenOf(job)).toEqual(["decode", "settle"])
    expect(of(none.trace)).toEqual([])
  })

  it("goes on in the same trace after the node was killed during it, and a cancelled one says so", async () => {
    const dir = temporaryDir()
    const first = await start(dir.path, 60_000)
    const { trace, traceparent } = newTrace()
    const atWork = async (model: Target, job: string) =>
      eventually(async () => (await poll(model, job)).body.status === "processing", "it is at work")
    try {
      const id = await submitTo(first, traceparent, "slow")
      await atWork(target(first), id)
      const request = await untilSpan(trace, `POST ${path}`)
      expect(of(trace, "transcription job")).toEqual([])
      const other = newTrace()
      const unwanted = await submitTo(first, other.traceparent, "slow")
      await atWork(target(first), unwanted)
      expect((await poll(target(first), unwanted, "DELETE")).body.status).toBe("cancelled")
      const cancelled = await untilSpan(other.trace, "transcription job")
      expect(factsOf(cancelled)["edgewise.outcome"]).toBe("cancelled")
      await first.dispose()
      const second = await start(dir.path)
      try {
        expect((await untilDone(target(second), id)).status).toBe(200)
        const job = await untilSpan(trace, "transcription job")
        expect(job.parentSpanId).toBe(request.spanId)
        expect(factsOf(job)).toMatchObject({ "edgewise.job_id": id, "edgewise.outcome": "completed" })
      } finally {
        await second.dispose()
      }
    } finally {
      await first.dispose()
      dir.remove()
    }
  })
})

const openLive = (route: string, query: Record<string, string>, traceparent: string) => {
  const values = new URLSearchParams({ token: node.devKey, ...query })
  return SocketClient.open(`ws://127.0.0.1:${node.port}${route}?${values}`, { traceparent })
}

describe("a live session", () => {
  const route = "/v1/audio/transcriptions/ws"

  it("is a child of its handshake, with seconds of audio, events and durations", async () => {
    const { trace, traceparent } = newTrace()
    const client = await openLive(route, { model: "listener", prompt: "MyPrivatePrompt" }, traceparent)
    const captions = () => client.frames.filter(({ type }) => type === "transcript.text.delta").length
    speak(client, noise(2), 640)
    await client.until(() => captions() > 0)
    client.send({ type: "stop" })
    expect((await client.closed).code).toBe(1000)
    const session = await untilSpan(trace, "live transcription")
    const handshake = await untilSpan(trace, `GET ${route}`)
    expect(handshake.parentSpanId).toBe(parent)
    expect(session.parentSpanId).toBe(handshake.spanId)
    const facts = factsOf(session)
    expect(facts).toMatchObject({
      "edgewise.request_id": factsOf(handshake)["edgewise.request_id"],
      "edgewise.close_code": 1000,
      "edgewise.audio_ms": 2_000,
      "edgewise.deltas": captions(),
      "edgewise.model": "listener",
    })
    expect(facts["edgewise.engine_calls"]).toBeGreaterThanOrEqual(captions() + 1)
    expect(facts["edgewise.engine_ms"]).toBeLessThanOrEqual(Math.ceil(lengthMs(session)))
    for (const secret of ["MyPrivatePrompt", String(client.frames.at(-1)?.text), node.devKey]) {
      expect(told()).not.toContain(secret)
    }
  })

  it("has the close code of either side, and no span where its caller wants no trace", async () => {
    const none = newTrace(false)
    const quiet = await openLive(route, { model: "listener" }, none.traceparent)
    quiet.send({ type: "stop" })
    await quiet.closed
    const bad = newTrace()
    const client = await openLive(route, { model: "listener" }, bad.traceparent)
    client.send("nonsense")
    expect((await client.closed).code).toBe(1003)
    expect(factsOf(await untilSpan(bad.trace, "live transcription"))["edgewise.close_code"]).toBe(1003)
    const lost = newTrace()
    const leaver = await openLive(route, { model: "listener" }, lost.traceparent)
    leaver.vanish()
    expect(factsOf(await untilSpan(lost.trace, "live transcription"))["edgewise.close_code"]).toBe(1006)
    expect(of(none.trace)).toEqual([])
    const refused = newTrace()
    await expect(openLive(route, { model: "unknown" }, refused.traceparent)).rejects.toThrow("refused")
    await untilSpan(refused.trace, `GET ${route}`)
    expect(of(refused.trace, "live transcription")).toEqual([])
  })

  it("of the realtime protocol counts its items", async () => {
    const { trace, traceparent } = newTrace()
    const realtime = "/v1/realtime"
    const client = await openLive(realtime, { intent: "transcription", model: "listener" }, traceparent)
    client.send({
      type: "session.update",
      session: { type: "transcription", audio: { input: { turn_detection: null } } },
    })
    const finished = () => client.frames.filter(({ type }) => String(type).endsWith(".completed")).length
    for (let item = 1; item <= 2; item++) {
      const audio = noise(3).toString("base64")
      client.send({ type: "input_audio_buffer.append", audio })
      client.send({ type: "input_audio_buffer.commit" })
      await client.until(() => finished() === item)
    }
    const deltas = client.frames.filter(({ type }) => String(type).endsWith(".delta")).length
    client.socket.close(1000)
    const session = await untilSpan(trace, "realtime transcription")
    expect(session.parentSpanId).toBe((await untilSpan(trace, `GET ${realtime}`)).spanId)
    const facts = factsOf(session)
    expect(facts).toMatchObject({
      "edgewise.close_code": 1000,
      "edgewise.items": 2,
      "edgewise.deltas": deltas,
      "edgewise.model": "listener",
    })
    // 3 s of 16 kHz samples at 24 kHz: 2 s each; the resampler's filter keeps the last few.
    expect(facts["edgewise.audio_ms"]).toBeGreaterThan(3_900)
    expect(facts["edgewise.audio_ms"]).toBeLessThanOrEqual(4_000)
    expect(facts["edgewise.engine_calls"]).toBeGreaterThanOrEqual(2)
  })
})

describe("the completions socket", () => {
  const route = "/v1/completions/ws"

  it("is a span with one inside for each generation, however it ends", async () => {
    const { trace, traceparent } = newTrace()
    const client = await openLive(route, {}, traceparent)
    const ask = (request_id: string, script: object) =>
      client.send({ model: "fake", prompt: `fake:${JSON.stringify(script)}`, request_id })
    ask("one", { tokens: 5, text: " MyPrivateToken" })
    await client.end("one")
    ask("My private id", { tokens: 3, failAt: 2 })
    await client.end("My private id")
    ask("three", { tokens: 1_000, tokenMs: 20 })
    await client.until(() => client.of("three").length > 0)
    client.send({ type: "cancel", request_id: "three" })
    client.send({ model: "unknown", prompt: "x", request_id: "four" })
    await client.end("four")
    await untilSpan(trace, "generation", 4)
    client.socket.close(1000)
    const session = await untilSpan(trace, "completions socket")
    const handshake = await untilSpan(trace, `GET ${route}`)
    expect(session.parentSpanId).toBe(handshake.spanId)
    // The handshake has its own span without steps of a generation.
    expect(childrenOf(handshake)).toEqual(["auth", "completions socket"])
    const generations = of(trace, "generation")
    expect(generations.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(4).fill(session.spanId))
    const byOutcome = new Map(generations.map((one) => [factsOf(one)["edgewise.outcome"], one]))
    expect([...byOutcome.keys()].toSorted()).toEqual(["EngineFailed", "ModelNotLoaded", "cancelled", "stop"])
    const whole = byOutcome.get("stop")!
    expect(factsOf(whole)).toMatchObject({
      "edgewise.generation_id": "one",
      "edgewise.output_tokens": 5,
      "edgewise.model": "fake",
    })
    expect(childrenOf(whole)).toEqual(["engine", "first unit", "queue"])
    expect(childrenOf(byOutcome.get("ModelNotLoaded")!)).toEqual([])
    const sum = (key: string) => generations.reduce((all, one) => all + Number(factsOf(one)[key]), 0)
    expect(factsOf(session)).toMatchObject({
      "edgewise.close_code": 1000,
      "edgewise.generations": 4,
      "edgewise.input_tokens": sum("edgewise.input_tokens"),
      "edgewise.output_tokens": sum("edgewise.output_tokens"),
    })
    expect(Number(factsOf(session)["edgewise.input_tokens"])).toBeGreaterThan(0)
    for (const secret of ["MyPrivateToken", "My private id"]) expect(told()).not.toContain(secret)
  })
})

it("a node that stops still exports spans of the sessions that it ended", async () => {
  const routes = ["/v1/audio/transcriptions/ws", "/v1/realtime", "/v1/completions/ws"]
  const names = ["live transcription", "realtime transcription", "completions socket"]
  const opened = await Promise.all(
    routes.map(async (route) => {
      const { trace, traceparent } = newTrace()
      const model: Record<string, string> = route === "/v1/completions/ws" ? {} : { model: "listener" }
      return { trace, client: await openLive(route, model, traceparent) }
    }),
  )
  node.signal("SIGTERM")
  for (const { client } of opened) expect((await client.closed).code).toBe(1001)
  expect(await node.exited).toEqual([0, null])
  const spans = opened.map(({ trace }, at) => of(trace, names[at])[0])
  expect(spans.map((span) => span && factsOf(span)["edgewise.close_code"])).toEqual([1001, 1001, 1001])
})
