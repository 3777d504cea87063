// A model whose catalog entry names a draft, over a real node: captions are the draft's, the final result is its own,
// and losing the draft costs the session nothing but faster captions.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import {
  deltas,
  lastWord,
  listener,
  noise,
  openLive,
  speak,
  syncAnswer,
} from "../../support/clients/LiveClient.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const large = { words: ["exact"], pieceSeconds: 4 }
const small = { words: ["draft"], captions: { seconds: 2, callMs: 0 } }

let node: TestNode
let operator: string
beforeAll(async () => {
  node = await startNode({
    models: [
      listener(large, { id: "large", transcription: { draft: "small" } }),
      listener(small, { id: "small", runtime: { load: "demand" } }),
    ],
  })
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  operator = (await node.run(made)).apiKey
})
afterAll(() => node.stop())

const second = 32_000
const pcm = noise(7)

const isLoaded = async (model: string) =>
  (await node.metrics()).get(`edgewise_model_loaded{model="${model}"}`) === 1

describe("a live session of a model with a draft", () => {
  it("loads the draft, shows its captions, and ends in the model's own text", async () => {
    const { text } = await syncAnswer(node, pcm, { model: "large" })
    expect(await isLoaded("small")).toBe(false)
    const client = await openLive(node, { model: "large" })
    expect(await isLoaded("small")).toBe(true)
    for (let at = 0; at < 3; at++) {
      speak(client, pcm.subarray(at * second, (at + 1) * second))
      await client.until(() => deltas(client).at(-1)?.audio_ms === (at + 1) * 1_000)
    }
    const captions = deltas(client).map(({ delta }) => delta)
    expect(captions.join("")).toContain("draft")
    expect(captions.join("")).not.toContain("exact")
    speak(client, pcm.subarray(3 * second))
    client.send({ type: "stop" })
    expect(await lastWord(client)).toMatchObject({ type: "transcript.text.done", text })
    expect(text).toContain("exact")
  })

  it("goes on with the model itself when the draft is unloaded", async () => {
    const client = await openLive(node, { model: "large" })
    speak(client, pcm.subarray(0, second))
    await client.until(() => deltas(client).length > 0)
    const before = deltas(client).length
    const unloaded = await node.post("/v1/models/unload", { model_name: "small" }, { key: operator })
    expect(unloaded.status).toBe(200)
    // However dear a caption was on a busy machine, there is one every two seconds.
    speak(client, pcm.subarray(second, 4 * second))
    await client.until(() => deltas(client).length > before)
    expect(deltas(client)[before]!.delta).toContain("exact")
    client.send({ type: "stop" })
    const { text } = await syncAnswer(node, pcm.subarray(0, 4 * second), { model: "large" })
    expect(await lastWord(client)).toMatchObject({ text })
    // A new session has no draft from the start, because an operator has unloaded it.
    const next = await openLive(node, { model: "large" })
    speak(next, pcm.subarray(0, 3 * second))
    await next.until(() => deltas(next).length > 0)
    expect(deltas(next)[0]!.delta).toContain("exact")
    next.socket.close()
  })
})
