// Charges for speech: the samples that were delivered, however the reply ends, and nothing for what was not delivered.
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { decodeOggOpus, parseOgg } from "../../support/audio/OggPages.ts"
import { RawConnection } from "../../support/clients/RawHttp.ts"
import {
  fakeVoice,
  presetModel,
  scriptSamples,
  speak,
  speechRequestBytes,
  spokenScript,
} from "../../support/nodes/SpeechNode.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  // Some readers stand still while real replies are made beside them, which on a busy machine takes longer than the usual 30 s.
  node = await startNode({ models: [fakeVoice, presetModel], transport: { stallTimeoutMs: 600_000 } })
  await speak(node, { model: "tts-82m", voice: "af_bella", input: "Hi." })
  await speak(node, { model: "fake-voice", voice: "fake", input: "Hi." })
})
afterAll(() => node.stop())

/** All that the organization `credit` has been charged for. */
const account = () =>
  node.run(
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      yield* ledger.flush
      const org = yield* (yield* Accounts).showOrg("credit")
      const rows = yield* ledger.usage(org.id, 0)
      const sum = (part: (row: (typeof rows)[number]) => number) =>
        rows.reduce((total, row) => total + part(row), 0)
      return {
        audioMs: sum(({ audioMs }) => audioMs),
        microDollars: sum(({ microDollars }) => microDollars),
        requests: sum(({ requests }) => requests),
        creditsMicroDollars: org.creditsMicroDollars,
      }
    }),
  )
type Account = Awaited<ReturnType<typeof account>>

let before: Account
beforeEach(async () => {
  before = await account()
})

/** The charge since the test began, once no request runs any more. */
const charged = async () => {
  await untilIdle(node)
  const now = await account()
  expect(before.creditsMicroDollars - now.creditsMicroDollars).toBe(now.microDollars - before.microDollars)
  return {
    audioMs: now.audioMs - before.audioMs,
    microDollars: now.microDollars - before.microDollars,
    requests: now.requests - before.requests,
  }
}
const msOf = (samples: number): number => Math.ceil((samples * 1000) / 24_000)
const costOf = (audioMs: number): number => Math.ceil((audioMs * 6_000) / 60_000)

const fake = (steps: object, more: object = {}) => ({
  model: "fake-voice",
  voice: "fake",
  input: spokenScript({ ...steps }),
  ...more,
})
/**
 * A reply that its client leaves, and how long it would be. It is made twice as fast as it is played: an eighth of it takes a minute, in
 * which a machine that is ever so busy notices that the client has left.
 */
const leftSteps = { pieces: 10_000, samples: 2_400, pieceMs: 50 }
const leftMs = 10_000 * 100

const paid = (body: object) => speak(node, body, node.keys.credit)
const open = async (body: object) => {
  const connection = await RawConnection.open(node.port)
  await connection.send(speechRequestBytes(node, body, node.keys.credit))
  return connection
}

describe("a whole reply costs its samples", () => {
  it.each([
    ["pcm", false],
    ["wav", false],
    ["mp3", false],
    ["pcm", true],
    ["opus", true],
  ])("%s, stream: %s", async (response_format, stream) => {
    const text = "The quick brown fox jumps over the lazy dog. It really does; look!"
    const body = { model: "tts-82m", voice: "am_adam", input: text }
    const samples = (await speak(node, body)).body.length / 2
    const reply = await paid({ ...body, response_format, stream })
    expect([reply.status, reply.complete]).toEqual([200, true])
    const ms = msOf(samples)
    expect(await charged()).toEqual({ audioMs: ms, microDollars: costOf(ms), requests: 1 })
  })

  it("at any speed", async () => {
    for (const speed of [0.25, 4]) {
      before = await account()
      const { body } = await paid(fake({ pieces: 5 }, { speed }))
      expect(body.equals(scriptSamples({ pieces: 5 }, { speed }))).toBe(true)
      expect((await charged()).audioMs).toBe(msOf(body.length / 2))
    }
  })
})

describe("what was not delivered costs nothing", () => {
  it("a refused request", async () => {
    await paid(fake({ refuse: "input" }))
    await paid(fake({ failAt: 0 }, { stream: true }))
    expect(await charged()).toEqual({ audioMs: 0, microDollars: 0, requests: 0 })
  })

  it.each(["wav", "mp3"])("a batch reply of %s that fails half way", async (response_format) => {
    expect((await paid(fake({ failAt: 2 }, { response_format }))).status).toBe(502)
    expect((await charged()).microDollars).toBe(0)
  })

  it("a batch reply of pcm that fails before its first sample", async () => {
    expect((await paid(fake({ failAt: 0 }))).status).toBe(502)
    expect((await charged()).microDollars).toBe(0)
  })
})

it.each(["wav", "mp3"])(
  "a batch reply of %s whose client leaves while it is made costs what was made by then",
  async (response_format) => {
    const steps = { pieces: 10_000, samples: 2_400, pieceMs: 10 }
    const connection = await open(fake(steps, { response_format }))
    const pieces = () =>
      node.run(
        Effect.map(ModelRegistry, (registry) => registry.find("fake-voice")?.meters.unitGapMs.count ?? 0),
      )
    const before = await pieces()
    await eventually(async () => (await pieces()) > before + 3, "some audio is made")
    connection.destroy()
    const { audioMs, requests } = await charged()
    expect(requests).toBe(1)
    expect(audioMs).toBeGreaterThan(0)
    expect(audioMs).toBeLessThan(10_000 * 100)
  },
)

describe("a batch reply of pcm is written while it is made, and costs what was written of it", () => {
  it("when the engine fails midway: every byte that came and no more", async () => {
    const steps = { pieces: 9, samples: [4_801, 77, 12_000], failAt: 5 }
    const reply = await paid(fake(steps))
    expect([reply.status, reply.complete]).toEqual([200, false])
    expect(reply.body.equals(scriptSamples(steps, { pieces: 5 }))).toBe(true)
    expect((await charged()).audioMs).toBe(msOf(reply.body.length / 2))
  })

  it("when its client leaves: the work ends, and what was on its way is charged as well", async () => {
    const connection = await open(fake(leftSteps))
    await connection.bytes(40_000)
    const receivedMs = connection.unread.length / 48
    connection.destroy()
    const { audioMs, requests } = await charged()
    expect(requests).toBe(1)
    expect(audioMs).toBeGreaterThan(receivedMs * 0.7)
    expect(audioMs).toBeLessThan(leftMs / 8)
  })

  it("does not hold a slot for a reader that takes nothing", async () => {
    // 6 MB: more than the system's buffers take, less than may wait for the reader.
    const connection = await open(fake({ pieces: 250, samples: 12_000 }))
    connection.socket.pause()
    await eventually(() => node.counts.replyBufferedBytes > 0, "the reply waits for its reader")
    await eventually(() => node.gauges("fake-voice").open === 0, "the engine is done")
    connection.socket.resume()
    const reply = await connection.response()
    connection.destroy()
    expect([reply.complete, reply.body.length]).toEqual([true, 250 * 24_000])
    expect((await charged()).audioMs).toBe(msOf(250 * 12_000))
  })

  it("pauses the engine when far too much waits for the reader", async () => {
    // 96 MB in all.
    const connection = await open(fake({ pieces: 4_000, samples: 12_000 }))
    connection.socket.pause()
    await eventually(() => node.counts.replyBufferedBytes > 0, "the reply waits for its reader")
    for (let i = 0; i < 20; i++) {
      const model = { model: "tts-82m", voice: "am_adam", input: "And so on, and so forth." }
      expect((await speak(node, model)).status).toBe(200)
    }
    expect(node.gauges("fake-voice").open).toBe(1)
    connection.destroy()
    expect((await charged()).audioMs).toBeLessThan(msOf(4_000 * 12_000) / 4)
  })
})

describe("a stream costs what was written of it", () => {
  it("pcm, when the engine fails midway: every byte that came and no more", async () => {
    const steps = { pieces: 9, samples: [4_801, 77, 12_000], failAt: 5 }
    const reply = await paid(fake(steps, { stream: true }))
    expect([reply.status, reply.complete]).toEqual([200, false])
    expect(reply.body.equals(scriptSamples(steps, { pieces: 5 }))).toBe(true)
    expect((await charged()).audioMs).toBe(msOf(reply.body.length / 2))
  })

  it("opus, when the engine fails midway: what was encoded, and the pages state how much that is", async () => {
    const reply = await paid(
      fake({ pieces: 60, samples: 2_400, pieceMs: 5, failAt: 50 }, { stream: true, response_format: "opus" }),
    )
    expect([reply.status, reply.complete]).toEqual([200, false])
    const { pages, restBytes } = parseOgg(reply.body)
    expect(restBytes).toBe(0)
    expect(pages.some((page) => page.endOfStream)).toBe(false)
    const playedMs = Number(pages.at(-1)!.granule) / 48
    const { audioMs } = await charged()
    // An unfinished page when the encoder is stopped holds up to 60 ms, a slice of its work 250.
    expect(audioMs).toBeGreaterThanOrEqual(playedMs - 20)
    expect(audioMs).toBeLessThan(playedMs + 310)
    expect(decodeOggOpus(reply.body).length / 48).toBeGreaterThan(playedMs - 20)
  })

  it.each(["pcm", "opus"])("%s, when its client leaves", async (response_format) => {
    const connection = await open(fake(leftSteps, { stream: true, response_format }))
    await connection.bytes(response_format === "pcm" ? 40_000 : 6_000)
    const receivedBytes = connection.unread.length
    connection.destroy()
    const { audioMs, requests } = await charged()
    expect(requests).toBe(1)
    const receivedMs = response_format === "pcm" ? receivedBytes / 48 : receivedBytes / 6
    // What was in flight when the client disconnected is charged as well.
    expect(audioMs).toBeGreaterThan(receivedMs * 0.7)
    expect(audioMs).toBeLessThan(leftMs / 8)
  })

  it("of a client that takes nothing: what the system's buffers took, and the engine waits", async () => {
    const steps = { pieces: 4_000, samples: 12_000 }
    const connection = await open(fake(steps, { stream: true }))
    connection.socket.pause()
    const wholeMs = msOf(4_000 * 12_000)
    // The engine has to be paused: while others are served, it could make a hundred times as much.
    await eventually(() => node.counts.replyBufferedBytes > 0, "the reply waits for its reader")
    for (let i = 0; i < 20; i++) {
      const model = { model: "tts-82m", voice: "am_adam", input: "And so on, and so forth." }
      expect((await speak(node, model)).status).toBe(200)
    }
    expect(node.gauges("fake-voice").open).toBe(1)
    connection.destroy()
    const { audioMs } = await charged()
    expect(audioMs).toBeGreaterThan(0)
    expect(audioMs).toBeLessThan(wholeMs / 4)
  })
})

it("a parallel burst is charged for each", async () => {
  const bodies = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      paid(fake({ pieces: 1 + (i % 5), seed: i }, { stream: i % 2 === 0 })),
    ),
  )
  const sum = bodies.reduce((total, { body }) => total + msOf(body.length / 2), 0)
  expect(await charged()).toMatchObject({ audioMs: sum, requests: 20 })
})
