// What /v1/audio/speech refuses: each row of the table of protocol 8.9, and its boundary cases.
// A refusal is a status and one `detail`, before any audio, and leaves no slot taken and no money spent.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import {
  headerOf,
  jsonOf,
  RawConnection,
  type RawResponse,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import { inLong } from "../../support/groups/Runs.ts"
import {
  fakeClone,
  fakeVoice,
  presetModel,
  scriptSamples,
  speak,
  speechPath,
  speechRequestBytes,
  spokenScript,
} from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  const narrow = { ...fakeVoice, id: "narrow", options: { slots: 1 }, runtime: { waitingLine: 0 } }
  node = await startNode({ models: [fakeVoice, fakeClone, presetModel, narrow, fakeModel] })
  const loaded = ["fake-voice", "fake-clone", "tts-82m", "narrow"].map((model) =>
    speak(node, { model, voice: "none", input: "Hi." }),
  )
  await Promise.all(loaded)
})
afterAll(() => node.stop())

const credits = () =>
  node.run(
    Effect.gen(function* () {
      yield* (yield* UsageLedger).flush
      return (yield* (yield* Accounts).showOrg("credit")).creditsMicroDollars
    }),
  )

const good = { model: "fake-voice", voice: "fake", input: "Hello." }
const clone = { model: "fake-clone", voice: "default", input: "Hello." }
const ask = (more: object) => speak(node, { ...good, ...more }, node.keys.credit)

const expectRefusal = (reply: RawResponse, status: number, start: string): void => {
  expect([reply.status, reply.body.toString("utf8")]).toEqual([status, expect.any(String)])
  expect(headerOf(reply, "content-type")).toMatch(/^application\/json/)
  expect(headerOf(reply, "x-service-stream")).toBeUndefined()
  const body = jsonOf(reply) as { readonly detail: string }
  expect(Object.keys(body)).toEqual(["detail"])
  expect(body.detail.startsWith(start), body.detail).toBe(true)
  expect(body.detail).not.toMatch(/\n|node_modules|\.ts\b/)
  expect(body.detail.length).toBeLessThan(300)
}

/** Every row is requested whole and as a stream, and must not cost a micro-dollar. */
const forBoth = (title: string, rows: ReadonlyArray<readonly [object, number, string]>) =>
  describe(title, () => {
    it.each(
      rows.map(([more, status, start]) => [JSON.stringify(more).slice(0, 80), more, status, start] as const),
    )("%s", async (_, more, status, start) => {
      const before = await credits()
      const both = await Promise.all([ask(more), ask({ stream: true, ...more })])
      for (const reply of both) expectRefusal(reply, status, start)
      expect(await credits()).toBe(before)
    })
  })

const absent = (field: string) => ({ [field]: undefined })

forBoth("400: fields", [
  ...["model", "input", "voice"].map((field) => [absent(field), 400, `${field}: is required`] as const),
  ...["model", "input", "voice"].flatMap((field) =>
    [5, true, null, ["x"], { a: 1 }, ""].map((value) => [{ [field]: value }, 400, `${field}: `] as const),
  ),
  ...[" ", "\n\t ", "\u00a0\u2003"].flatMap((blank) => [
    [{ input: blank }, 400, "input: "] as const,
    [{ voice: blank }, 400, "voice: "] as const,
  ]),
  // Nothing is left of them when the marks are gone.
  ...['""', "---", "```\n```", '"``` \n```"'].map((input) => [{ input }, 400, "input: "] as const),
  ...["aac", "flac", "", "WAV", "audio/wav", "pcm ", "ogg"].map(
    (response_format) => [{ response_format }, 400, "response_format: "] as const,
  ),
  ...[5, true, ["pcm"], {}].map(
    (response_format) => [{ response_format }, 400, "response_format: "] as const,
  ),
  ...[0, 0.2499, 4.0001, -1, 1e308, "1", true, [1]].map((speed) => [{ speed }, 400, "speed: "] as const),
  ...[0, "true", [], {}].map((stream) => [{ stream }, 400, "stream: "] as const),
  [{ voice_transcript: 5 }, 400, "voice_transcript: "],
  [{ language: 5 }, 400, "language: "],
  [{ model: "fake" }, 400, "model: fake does not speak"],
])

describe("400: formats and modes that do not go together", () => {
  it.each([
    [{ stream: true, response_format: "wav" }, "response_format: "],
    [{ stream: true, response_format: "mp3" }, "response_format: "],
    [{ stream: true, response_format: "aac" }, "response_format: "],
    [{ stream: true, response_format: "flac" }, "response_format: "],
    [{ response_format: "opus" }, "response_format: "],
    [{ response_format: "aac" }, "response_format: "],
    [{ response_format: "flac" }, "response_format: "],
    [{ ...clone, stream: true, speed: 1.01 }, "speed: "],
    [{ ...clone, stream: true, speed: 0.25 }, "speed: "],
    [{ ...clone, stream: true, speed: 4, response_format: "opus" }, "speed: "],
  ])("%o", async (more, start) => expectRefusal(await ask(more), 400, start))

  it("while a preset model streams at any speed", async () => {
    for (const speed of [0.25, 4]) expect((await ask({ stream: true, speed })).status).toBe(200)
  })
})

forBoth("400: languages of a cloning model", [
  [{ ...clone, language: "de" }, 400, "language: must be one of en, fr"],
  [{ ...clone, language: "EN" }, 400, "language: "],
  [{ ...clone, language: "" }, 400, "language: "],
])

describe("400: bodies", () => {
  it.each([
    ["nothing", ""],
    ["no JSON", "input=hello"],
    ["half of JSON", '{"model":"fake-voice","input":"a'],
    ["a list", "[]"],
    ["a text", '"hello"'],
    ["null", "null"],
  ])("%s", async (_, body) => expectRefusal(await speak(node, body), 400, "body: "))

  it("but an unknown field is ignored, as are nulls", async () => {
    expect((await ask({ instructions: "whisper", seed: 7 })).status).toBe(200)
    const nulls = { speed: null, stream: null, language: null, voice_transcript: null, response_format: null }
    expect((await ask(nulls)).status).toBe(200)
  })
})

forBoth("404", [[{ model: "tts-none" }, 404, "Model not loaded"]])

describe("401, 402, 405", () => {
  it("come before the body is read", async () => {
    const anonymous = await rawRequest(node.port, requestBytes("POST", speechPath, {}, JSON.stringify(good)))
    expectRefusal(anonymous, 401, "Missing bearer token")
    expectRefusal(await speak(node, good, node.keys.revoked), 401, "Invalid API key")
    expectRefusal(await speak(node, good, node.keys.broke), 402, "Billing access denied")
    expectRefusal(await speak(node, { ...good, stream: true }, node.keys.broke), 402, "Billing access denied")
    const got = await rawRequest(node.port, requestBytes("GET", speechPath))
    expectRefusal(got, 405, "Method Not Allowed")
    expect(headerOf(got, "allow")).toMatch(/POST/)
  })

  it("402 comes before a reference clip is fetched or decoded", async () => {
    const paid = { ...clone, voice: "http://127.0.0.1:1/clip.wav", voice_transcript: "Hello." }
    expectRefusal(await speak(node, paid, node.keys.broke), 402, "Billing access denied")
  })
})

describe("413", () => {
  it.each([
    ["fake-voice", 4096],
    ["fake-clone", 850],
  ])("%s says its limit of %i characters", async (model, cap) => {
    const voice = model === "fake-clone" ? "default" : "fake"
    for (const stream of [false, true]) {
      const detail = `input: ${model} speaks at most ${cap} characters`
      expectRefusal(await ask({ model, voice, stream, input: "a".repeat(cap + 1) }), 413, detail)
      // A text far over the cap is not even cleaned.
      expectRefusal(await ask({ model, voice, stream, input: "`".repeat(cap * 20) }), 413, detail)
    }
    expect((await ask({ model, voice, input: "a".repeat(cap) })).status).toBe(200)
  })

  it("for a body over 8 MB, whatever is in it", inLong, async () => {
    const voice = Buffer.alloc(9_000_000, 65).toString("latin1")
    const body = JSON.stringify({ ...clone, voice, voice_transcript: "Hello." })
    expectRefusal(await speak(node, body), 413, "body: larger than 8000000 bytes")
  })
})

forBoth("502: nothing that could be said", [
  [{ voice: "unknown" }, 502, "TTS backend error"],
  [{ model: "tts-82m", voice: "fake" }, 502, "TTS backend error"],
  [{ model: "tts-82m", voice: "af_bella ".repeat(100_000) }, 502, "TTS backend error"],
  // Nothing in it is speakable.
  [{ model: "tts-82m", voice: "af_bella", input: "…!?" }, 502, "TTS backend error"],
  [{ model: "tts-82m", voice: "af_bella", input: "\u200b\u200b" }, 502, "TTS backend error"],
  [{ input: spokenScript({ refuse: "input" }) }, 502, "TTS backend error"],
  [{ input: spokenScript({ refuse: "voice" }) }, 502, "TTS backend error"],
  [{ input: spokenScript({ failAt: 0 }) }, 502, "TTS backend error"],
  [{ input: spokenScript({ pieces: 0 }) }, 502, "TTS backend error"],
  [{ input: spokenScript({ samples: 0 }) }, 502, "TTS backend error"],
])

describe("502: an engine that", () => {
  it("crashes before the first audio", async () => {
    // Each of another user: one whose requests crash an engine twice is refused for a while.
    for (const [stream, key] of [
      [false, node.keys.dev],
      [true, node.keys.credit],
    ] as const) {
      const crash = { ...good, stream, input: spokenScript({ crashAt: 0 }) }
      expectRefusal(await speak(node, crash, key), 502, "TTS backend error")
      expect((await ask({})).status).toBe(200)
    }
  })

  it("fails in the middle of a batch reply", async () => {
    for (const response_format of ["wav", "mp3"]) {
      const reply = await ask({ response_format, input: spokenScript({ failAt: 2 }) })
      expectRefusal(reply, 502, "TTS backend error")
    }
  })

  it("fails after the first audio of a batch reply of pcm: the body stays incomplete, and holds no error", async () => {
    const steps = { failAt: 2 }
    const reply = await ask({ input: spokenScript(steps) })
    expect([reply.status, reply.complete]).toEqual([200, false])
    expect(reply.body.equals(scriptSamples(steps, { pieces: 2 }))).toBe(true)
  })
})

it("but a refusal that the caller can cure is a 400", async () => {
  expectRefusal(await ask({ input: spokenScript({ refuse: "speed" }) }), 400, "speed: ")
  expectRefusal(await ask({ ...clone, input: spokenScript({ refuse: "voice" }) }), 400, "voice: ")
})

it("503 with Retry-After when no slot and no place in the queue is free", async () => {
  const busy = new AbortController()
  const held = node.post(
    speechPath,
    { ...good, model: "narrow", stream: true, input: spokenScript({ pieces: 10_000, pieceMs: 20 }) },
    { signal: busy.signal },
  )
  await (await held).body!.getReader().read()
  for (const stream of [false, true]) {
    const reply = await ask({ model: "narrow", stream })
    expectRefusal(reply, 503, "Model is at capacity")
    expect(Number(headerOf(reply, "retry-after"))).toBeGreaterThanOrEqual(1)
  }
  busy.abort()
  await untilIdle(node)
  expect((await ask({ model: "narrow" })).status).toBe(200)
})

it("answers on the same connection after a refusal", async () => {
  const two = Buffer.concat([
    speechRequestBytes(node, { ...good, voice: "" }),
    speechRequestBytes(node, good),
  ])
  const connection = await RawConnection.open(node.port)
  await connection.send(two)
  expect((await connection.response()).status).toBe(400)
  expect((await connection.response()).status).toBe(200)
  connection.destroy()
})

it("leaves nothing behind", () => untilIdle(node))
