// Models and voices by other names, at every endpoint that takes one: the built-in speech weights and a scripted
// recogniser. All lists, metrics and receipts carry the real id.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { lastWord, listener, noise, openLive, wavOf } from "../../support/clients/LiveClient.ts"
import { headerOf, jsonOf } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { post, submit, targetOf, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { cloneModel, presetModel, speak, withoutWeights } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
let strict: TestNode
beforeAll(async () => {
  const named = { ...presetModel.speech, aliases: { boss: "bm_lewis", nova: "bf_emma" } }
  node = await startNode({
    models: [
      { ...fakeModel, aliases: ["gpt-4o"] },
      { ...presetModel, aliases: ["narrator"], speech: named },
      cloneModel,
      listener(),
      listener({}, { id: "other" }),
    ],
  })
  // What its voices say is not looked at.
  strict = await startNode({ models: [withoutWeights(presetModel)], settings: { openaiAliases: "false" } })
  await untilLoaded(node, "fake", "tts-82m", "tts-3b-ml", "listener", "other")
  await untilLoaded(strict, "tts-82m")
})
afterAll(async () => {
  await node.stop()
  await strict.stop()
})

const said = (more: object, at = node) =>
  speak(at, { model: "tts-82m", voice: "af_bella", input: "Hi.", ...more })
const get = async (path: string, at = node) =>
  (await at.fetch(path, { headers: { authorization: `Bearer ${at.keys.dev}` } })).json()

describe("speech", () => {
  it("by another name of model and voice is the speech of the real ones", async () => {
    for (const [model, voice, real] of [
      ["tts-1", "alloy", "af_sarah"],
      ["gpt-4o-mini-tts", "onyx", "am_adam"],
      ["narrator", "boss", "bm_lewis"],
      ["tts-82m", "nova", "bf_emma"],
    ]) {
      const reply = await said({ model, voice })
      expect([model, voice, reply.status]).toEqual([model, voice, 200])
      expect(reply.body.equals((await said({ voice: real })).body)).toBe(true)
    }
  })

  it("of a model that clones speaks with its default voice", async () => {
    const real = await said({ model: "tts-3b-ml", voice: "default" })
    const alias = await said({ model: "tts-3b-ml", voice: "cedar" })
    expect([alias.status, alias.body.equals(real.body)]).toEqual([200, true])
  })

  it("an unknown voice is answered 502 with the known voices in a header, as protocol 8.9 says", async () => {
    for (const voice of ["unknown", "Alloy", "constructor", "x".repeat(1_000)]) {
      const reply = await said({ voice })
      expect([reply.status, jsonOf(reply)]).toEqual([502, { detail: "TTS backend error" }])
      expect(headerOf(reply, "x-available-voices")).toBe(
        (presetModel.speech.voices as Array<string>).join(", "),
      )
    }
    expect(headerOf(await said({}), "x-available-voices")).toBeUndefined()
  })

  it("does not know OpenAI's names where the setting is off", async () => {
    expect((await said({ voice: "alloy" }, strict)).status).toBe(502)
    const model = await said({ model: "tts-1" }, strict)
    expect([model.status, jsonOf(model)]).toEqual([404, { detail: "Model not loaded" }])
    expect((await said({}, strict)).status).toBe(200)
    expect(await get("/v1/audio/voices?model=tts-82m", strict)).toMatchObject({ aliases: {} })
  })
})

describe("transcription", () => {
  const audio = wavOf(noise(2))
  const text = async (response: Response) => ((await response.json()) as { text: string }).text

  it("is the same at every endpoint", async () => {
    const real = await text(await post(node, audio, { query: { model: "listener", sync: "true" } }))
    expect(real.split(" ").length).toBeGreaterThan(5)
    expect(await text(await post(node, audio, { query: { model: "whisper-1", sync: "true" } }))).toBe(real)
    expect(await text(await post(node, audio, { fields: [["model", "gpt-4o-transcribe"]] }))).toBe(real)
    const streamed = await post(node, audio, { query: { model: "gpt-4o-mini-transcribe", stream: "true" } })
    expect(await streamed.text()).toContain(JSON.stringify(real))
    const job = await submit(targetOf(node), audio, { model: "whisper-1" })
    expect((await untilDone(targetOf(node), job)).body).toMatchObject({ status: "completed", text: real })
    const live = await openLive(node, { model: "whisper-1" })
    live.socket.send(noise(2))
    live.send({ type: "stop" })
    expect(await lastWord(live)).toMatchObject({ type: "transcript.text.done", text: real })
  })

  it("by the realtime protocol describes itself with the model's id", async () => {
    const address = `ws://127.0.0.1:${node.port}/v1/realtime?intent=transcription&token=${node.keys.dev}`
    const client = await SocketClient.open(`${address}&model=gpt-4o-transcribe`)
    const session = (transcription: object) => ({
      type: "session.update",
      session: { type: "transcription", audio: { input: { transcription } } },
    })
    client.send(session({ model: "gpt-4o-mini-transcribe" }))
    client.send(session({ model: "other" }))
    client.send(session({ model: "none" }))
    await client.until((events) => events.length === 4)
    const models = client.frames.map((frame) => JSON.stringify(frame).match(/"model":"([^"]*)"/)?.[1])
    expect(models).toEqual(["listener", "listener", "other", undefined])
    expect(client.frames[3]).toMatchObject({ type: "error", error: { message: "Model not loaded" } })
    client.socket.close()
  })

  it("detects no turns for models whose clients detect them, unless they request it", async () => {
    const turnsOf = (frame: unknown) => JSON.stringify(frame).match(/"turn_detection":(null|\{)/)?.[1]
    const update = (input: object) => ({
      type: "session.update",
      session: { type: "transcription", audio: { input } },
    })
    const address = `ws://127.0.0.1:${node.port}/v1/realtime?intent=transcription&token=${node.keys.dev}`
    const one = await SocketClient.open(`${address}&model=gpt-realtime-whisper`)
    one.send(update({ transcription: { model: "gpt-realtime-whisper" } }))
    one.send(update({ turn_detection: { type: "server_vad" } }))
    await one.until((events) => events.length === 3)
    expect(one.frames.map(turnsOf)).toEqual(["null", "null", "{"])
    const two = await SocketClient.open(address)
    two.send(update({ transcription: { model: "gpt-live-transcribe", languages: ["en"] } }))
    await two.until((events) => events.length === 2)
    expect(two.frames.map(turnsOf)).toEqual(["{", "null"])
    expect(two.frames[1]).toMatchObject({
      session: { audio: { input: { transcription: { language: "en" } } } },
    })
    one.socket.close()
    two.socket.close()
  })

  it("refuses the alias of a model of another kind", async () => {
    const wrong = await post(node, audio, { query: { model: "tts-1", sync: "true" } })
    expect([wrong.status, await wrong.json()]).toEqual([400, { detail: "model: tts-1 does not transcribe" }])
    const spoken = await said({ model: "whisper-1" })
    expect([spoken.status, jsonOf(spoken)]).toEqual([400, { detail: "model: whisper-1 does not speak" }])
  })
})

it("a text model answers by an alias of the catalog, under its own id", async () => {
  const messages = [{ role: "user", content: "x" }]
  const reply = await node.post("/v1/chat/completions", { model: "gpt-4o", messages })
  expect([reply.status, await reply.json()]).toMatchObject([200, { model: "fake" }])
})

it("lists, receipts and metrics carry the real ids alone", async () => {
  await untilIdle(node)
  const { data } = (await get("/v1/models")) as { data: ReadonlyArray<{ id: string }> }
  const ids = ["fake", "tts-82m", "tts-3b-ml", "listener", "other"]
  expect(data.map(({ id }) => id)).toEqual(ids)
  const labels = [...(await node.metrics()).keys()].flatMap(
    (name) => name.match(/model="([^"]*)"/)?.[1] ?? [],
  )
  expect(new Set(labels)).toEqual(new Set(ids))
  const charged = await node.run(
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      yield* ledger.flush
      const { id } = yield* (yield* Accounts).showOrg("dev")
      return (yield* ledger.usage(id, 0)).map(({ model }) => model)
    }),
  )
  expect(charged.length).toBeGreaterThan(3)
  for (const model of charged) expect(ids).toContain(model)
  expect(await get("/v1/audio/voices?model=tts-1")).toMatchObject({
    model: "tts-82m",
    aliases: { boss: "bm_lewis", nova: "bf_emma", alloy: "af_sarah" },
  })
})

it("a catalog whose alias is another model's id does not start", async () => {
  const models = [
    { ...fakeModel, aliases: ["llm"] },
    { ...fakeModel, id: "llm" },
  ]
  await expect(startNode({ models })).rejects.toThrow("aliases[0]: llm already names llm")
})
