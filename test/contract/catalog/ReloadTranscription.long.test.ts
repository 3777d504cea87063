// Transcription while the catalog changes: live sessions, files and jobs consist of many requests each. A streamed or
// whole answer stays with the engine that it began on; a job goes on with the new one.
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  deltas,
  lastWord,
  listener,
  noise,
  openLive,
  speak,
  syncAnswer,
  wavOf,
} from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { poll, post, submit, targetOf, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { leaving, reload } from "../../support/nodes/Reloading.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

/** A model that stays. No test asks it anything, so its engine is not started. */
const other = { ...fakeModel, runtime: { load: "demand" } }

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [other] })
})
afterAll(() => node.stop())

/** The node with this model, and with no engine that another test has left. */
const having = async (model: ReturnType<typeof listener>): Promise<TestNode> => {
  await reload(node, [other, model])
  await gone(node)
  await untilLoaded(node, "listener")
  return node
}

const gone = (at: TestNode) => eventually(async () => (await leaving(at)) === 0, "the old engine has ended")

it("a live session ends on the engine that it began on; the next one has the new engine", async () => {
  const at = await having(listener())
  const pcm = noise(4)
  const whole = await syncAnswer(at, pcm, { model: "listener" })
  const { pid } = at.gauges("listener")
  const client = await openLive(at, { model: "listener", window_s: "0.5" })
  speak(client, pcm.subarray(0, 64_000))
  await client.until(() => deltas(client).length > 0)
  // Pieces of another length: another engine would transcribe other words.
  expect(await reload(at, [other, listener({ pieceSeconds: 1 })])).toMatchObject({
    changed: ["listener"],
  })
  await untilLoaded(at, "listener")
  expect(at.gauges("listener").pid).not.toBe(pid)
  speak(client, pcm.subarray(64_000))
  client.send({ type: "stop" })
  expect((await lastWord(client)).text).toBe(whole.text)
  expect(await client.closed).toEqual({ code: 1000, reason: "" })
  await gone(at)
  const again = await openLive(at, { model: "listener" })
  speak(again, pcm)
  again.send({ type: "stop" })
  expect((await lastWord(again)).text).toBe((await syncAnswer(at, pcm, { model: "listener" })).text)
})

it("a live session of a removed model goes on; a new one is refused", async () => {
  const at = await having(listener())
  const pcm = noise(2)
  const client = await openLive(at, { model: "listener", window_s: "0.5" })
  expect(await reload(at, [other])).toMatchObject({ removed: ["listener"] })
  await expect(openLive(at, { model: "listener" })).rejects.toThrow("404")
  // Longer than the interval at which the use of the old engine is checked.
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(await leaving(at)).toBe(1)
  speak(client, pcm)
  client.send({ type: "stop" })
  expect((await lastWord(client)).type).toBe("transcript.text.done")
  await gone(at)
})

it("an open realtime connection does not keep a replaced engine, and takes its next item to the new one", async () => {
  const at = await having(listener())
  const url = `ws://127.0.0.1:${at.port}/v1/realtime?intent=transcription&token=${at.keys.dev}`
  const client = await SocketClient.open(url)
  const input = { transcription: { model: "listener" }, turn_detection: null }
  client.send({ type: "session.update", session: { type: "transcription", audio: { input } } })
  const transcripts = () =>
    client.frames
      .filter(({ type }) => type === "conversation.item.input_audio_transcription.completed")
      .map(({ transcript }) => transcript)
  const say = async (pcm: Buffer) => {
    const count = transcripts().length
    client.send({ type: "input_audio_buffer.append", audio: pcm.toString("base64") })
    client.send({ type: "input_audio_buffer.commit" })
    await client.until(() => transcripts().length > count)
    return transcripts().at(-1)
  }
  const words = expect.stringMatching(/[a-z]{4} [a-z]{4}/)
  expect(await say(noise(6))).toEqual(words)
  await reload(at, [other, listener({ pieceSeconds: 1 })])
  await gone(at)
  expect(await say(noise(6))).toEqual(words)
  expect(client.frames.filter(({ type }) => type === "error")).toEqual([])
  // A model that was removed is an error of the next item; the connection goes on.
  await reload(at, [other])
  await gone(at)
  client.send({ type: "input_audio_buffer.append", audio: noise(1).toString("base64") })
  await client.until((frames) => frames.some(({ type }) => type === "error"))
  expect(client.frames.find(({ type }) => type === "error")).toMatchObject({
    error: { code: "ModelNotLoaded", message: "Model not loaded" },
  })
  await reload(at, [other, listener()])
  expect(await say(noise(6))).toEqual(words)
})

it("a file that is answered at once is transcribed to its end on a removed model", async () => {
  const at = await having(listener({ callMs: 60 }))
  const file = wavOf(noise(20))
  const whole = (await (
    await post(at, file, { query: { model: "listener", sync: "true" } })
  ).json()) as object
  const answer = post(at, file, { query: { model: "listener", sync: "true" } })
  await eventually(() => at.gauges("listener").open > 0, "it is at it")
  await reload(at, [other])
  const reply = await answer
  expect([reply.status, await reply.json()]).toEqual([200, whole])
  expect((await post(at, file, { query: { model: "listener", sync: "true" } })).status).toBe(404)
  await gone(at)
})

it("a job goes on with the new engine, and waits for a model that comes back", async () => {
  const at = await having(listener({ callMs: 200 }))
  const target = targetOf(at)
  const job = await submit(target, wavOf(noise(120)), { model: "listener" })
  await eventually(() => at.gauges("listener").open > 0, "it is at it")
  const { pid } = at.gauges("listener")
  await reload(at, [other, listener({ callMs: 10 })])
  // The old engine does not wait for the whole file.
  await gone(at)
  await untilLoaded(at, "listener")
  expect(at.gauges("listener").pid).not.toBe(pid)
  expect((await untilDone(target, job)).status).toBe(200)

  const second = await submit(target, wavOf(noise(10)), { model: "listener" })
  expect((await untilDone(target, second)).status).toBe(200)
  await reload(at, [other, listener({ callMs: 200 })])
  await untilLoaded(at, "listener")
  const waits = await submit(target, wavOf(noise(120)), { model: "listener" })
  await eventually(() => at.gauges("listener").open > 0, "it is at it")
  await reload(at, [other])
  await reload(at, [other, listener()])
  expect((await untilDone(target, waits)).status).toBe(200)
  expect((await poll(target, waits)).body).toMatchObject({ status: "completed" })
})
