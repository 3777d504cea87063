// Admission of streams on a real node: as many as the model feeds in time. Batch requests do not count, and wait
// behind.
import { afterAll, beforeAll, expect, it } from "vitest"
import { headerOf, jsonOf, RawConnection } from "../../support/clients/RawHttp.ts"
import { fakeVoice, speak, speechRequestBytes, spokenScript } from "../../support/nodes/SpeechNode.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [
      // Two streams use all of its time, a third would not be fed in time.
      { ...fakeVoice, id: "slow", options: { realTimeFactor: 0.3 } },
      { ...fakeVoice, id: "learns", options: { realTimeFactor: 0.01 } },
      { ...fakeVoice, id: "crawls", options: { realTimeFactor: 3 } },
      { ...fakeVoice, id: "two", options: { slots: 2 } },
      { ...fakeVoice, id: "begins", options: { slots: 64 } },
    ],
  })
  await Promise.all(
    ["slow", "learns", "crawls", "two", "begins"].map((model) =>
      speak(node, { ...body(model), input: "Hi." }),
    ),
  )
})
afterAll(() => node.stop())

const body = (model: string, more: object = {}) => ({ model, voice: "fake", input: "Hi.", ...more })
const long = spokenScript({ pieces: 10_000, samples: 2_400, pieceMs: 5 })

/** A stream that has begun and goes on until its connection is destroyed. */
const open = async (model: string, more: object = {}): Promise<RawConnection> => {
  const connection = await RawConnection.open(node.port)
  await connection.send(speechRequestBytes(node, body(model, { stream: true, input: long, ...more })))
  await connection.bytes(1_000)
  expect(connection.unread.toString("latin1", 0, 12)).toBe("HTTP/1.1 200")
  return connection
}
const leave = async (...connections: ReadonlyArray<RawConnection>) => {
  for (const connection of connections) connection.destroy()
  await untilIdle(node)
}

it("a stream too many is refused before its first byte, with Retry-After, and costs nothing", async () => {
  const streams = [await open("slow"), await open("slow")]
  for (const response_format of ["pcm", "opus"]) {
    const refused = await speak(node, body("slow", { stream: true, response_format }))
    expect([refused.status, jsonOf(refused)]).toEqual([503, { detail: "Model is at capacity" }])
    expect(Number(headerOf(refused, "retry-after"))).toBeGreaterThanOrEqual(1)
  }
  // A batch reply has no playback deadline while it is made.
  expect((await speak(node, body("slow"))).status).toBe(200)
  streams[0]!.destroy()
  await eventually(
    async () => (await speak(node, body("slow", { stream: true }))).status === 200,
    "a place is free",
  )
  await leave(...streams)
})

it("a fast stream takes the place of several", async () => {
  const fast = await open("slow", { speed: 1.6 })
  expect((await speak(node, body("slow", { stream: true }))).status).toBe(200)
  expect((await speak(node, body("slow", { stream: true, speed: 1.1 }))).status).toBe(503)
  await leave(fast)
})

it("a model slower than speech still streams to one listener at a time", async () => {
  const one = await open("crawls")
  expect((await speak(node, body("crawls", { stream: true }))).status).toBe(503)
  await leave(one)
  await leave(await open("crawls"))
})

it("what replies have cost counts more than what the start measured", async () => {
  await leave(await open("learns"), await open("learns"), await open("learns"))
  const tell = (claimedMs: number) =>
    speak(node, body("learns", { input: spokenScript({ pieces: 10, samples: 240_000, claimedMs }) }))
  expect((await tell(6_000)).status).toBe(200)
  const factor = (await node.metrics()).get('edgewise_speech_real_time_factor{model="learns"}')
  expect(factor).toBeGreaterThan(0.5)
  expect(factor).toBeLessThanOrEqual(0.6)
  const one = await open("learns")
  expect((await speak(node, body("learns", { stream: true }))).status).toBe(503)
  await leave(one)
  for (let i = 0; i < 2; i++) await tell(10)
  await leave(await open("learns"), await open("learns"), await open("learns"))
})

it("a stream goes ahead of batch work that waits for a slot, and one slot is kept from batch work", async () => {
  // The first is made until its client leaves. The others wait for its slot, although another one is free.
  const first = await RawConnection.open(node.port)
  await first.send(speechRequestBytes(node, body("two", { input: long })))
  await eventually(() => node.gauges("two").open === 1, "a batch reply is made")
  const order: Array<string> = []
  const batches = Array.from({ length: 3 }, () =>
    speak(node, body("two")).then(({ status }) => order.push(`batch ${status}`)),
  )
  const streamed = await speak(node, body("two", { stream: true }))
  order.push(`stream ${streamed.status}`)
  await eventually(() => node.gauges("two").open === 1, "only the first batch reply is made")
  first.destroy()
  await Promise.all(batches)
  expect(order).toEqual(["stream 200", "batch 200", "batch 200", "batch 200"])
})

it("a stream for which no slot is free is refused instead of kept waiting for the end of another", async () => {
  const streams = [await open("two"), await open("two")]
  expect((await speak(node, body("two", { stream: true }))).status).toBe(503)
  await leave(...streams)
  expect((await speak(node, body("two", { stream: true }))).status).toBe(200)
})

it("of many streams that begin at once those are refused that would not sound soon", async () => {
  const asked = (pieceMs: number) =>
    body("begins", {
      stream: true,
      input: spokenScript({ pieces: 1, samples: 24_000, pieceMs, claimedMs: 1 }),
    })
  // A first piece takes a quarter of a second: six of them, a second and a half.
  // The node learns what it took; where the machine stood still meanwhile, it learns until that counts little. It reckons with no more
  // than `mostMs`, because a reply takes longer than its first piece.
  let mostMs = Number.POSITIVE_INFINITY
  for (let i = 0; i < 2 || mostMs > 500; i++) {
    const startMs = performance.now()
    await speak(node, asked(250))
    const tookMs = performance.now() - startMs
    mostMs = i === 0 ? tookMs : mostMs + (tookMs - mostMs) / 8
  }
  // None of these sounds while the others come, however long that takes.
  const clients = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(node.port)))
  for (const client of clients) await client.send(speechRequestBytes(node, asked(600_000)))
  const refused = () => clients.filter(({ unread }) => unread.length > 0)
  await eventually(() => refused().length + node.gauges("begins").open === 20, "all are answered or begin")
  for (const client of refused()) expect((await client.response()).status).toBe(503)
  const admitted = node.gauges("begins").open
  expect(admitted).toBeGreaterThan(1)
  expect(admitted).toBeLessThanOrEqual(6)
  await leave(...clients)
})

it("leaves nothing behind", () => untilIdle(node))
