// Conversations of the catalog: which models they join, how their sessions begin, their names, and reloads under open sessions.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener, noise } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { reload } from "../../support/nodes/Reloading.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel, type TestModel, writeCatalog } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const second: TestModel = { ...fakeModel, id: "second" }
const choir: TestModel = {
  ...fakeVoice,
  id: "choir",
  speech: { maxCharacters: 4096, voices: ["fake"], aliases: { low: "fake" } },
}
const assistant: TestModel = {
  id: "assistant",
  kind: "conversation",
  aliases: ["gpt-realtime-mini", "clerk"],
  conversation: {
    transcription: "ears",
    text: "second",
    speech: "choir",
    voice: "low",
    session: {
      instructions: "Be brief.",
      max_output_tokens: 7,
      audio: { input: { turn_detection: null }, output: { pacing: "none" } },
    },
  },
}
const plain: TestModel = {
  id: "plain",
  kind: "conversation",
  conversation: { transcription: "listener", text: "fake", speech: "fake-voice" },
}
const models = [listener(), listener({}, { id: "ears" }), fakeModel, second, fakeVoice, choir]
const both = [...models, assistant, plain]

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: both })
  await untilLoaded(node, "listener", "ears", "fake", "second", "fake-voice", "choir")
})
afterAll(() => node.stop())

const script = (steps: Readonly<Record<string, unknown>>) => `fake:${JSON.stringify(steps)}`
const sessionOf = (client: ConversationClient) => client.of("session.created")[0]!.session
const get = async (path: string) =>
  (await node.fetch(path, { headers: { authorization: `Bearer ${node.keys.dev}` } })).json()

describe("a conversation of the catalog", () => {
  it("begins with its voice and its session, under its id, its aliases and OpenAI's names", async () => {
    for (const model of ["assistant", "clerk", "gpt-realtime-mini", "gpt-realtime", "gpt-realtime-2.1"]) {
      const client = await ConversationClient.open(node, model)
      expect(sessionOf(client)).toMatchObject({
        model,
        instructions: "Be brief.",
        max_output_tokens: 7,
        audio: { input: { turn_detection: null }, output: { voice: "low", pacing: "none", speed: 1 } },
      })
      client.close()
    }
    const other = await ConversationClient.open(node, "plain")
    expect(sessionOf(other)).toMatchObject({ instructions: "", audio: { output: { voice: "fake" } } })
    other.close()
  })

  it("joins its three models, which the receipts name", async () => {
    const orgId = "three"
    const key = await orgWith(node, orgId, 1_000_000)
    const client = await ConversationClient.open(node, "assistant", key)
    client.update({ audio: { input: { transcription: { model: "gpt-4o-transcribe" } } } })
    await client.speak(noise(1, 5))
    client.send({ type: "input_audio_buffer.commit" })
    await client.nth("conversation.item.input_audio_transcription.completed")
    client.say(script({ tokens: 1, text: "Here I am." }))
    client.send({ type: "response.create" })
    await client.nth("response.done")
    const named = async () => new Set((await receiptsOf(node, orgId)).map(({ model }) => model))
    await eventually(async () => (await named()).size === 3, "three models are charged")
    expect(await named()).toEqual(new Set(["ears", "second", "choir"]))
    client.close()
  })

  it("hears with another model that the client names", async () => {
    const orgId = "other-ears"
    const key = await orgWith(node, orgId, 1_000_000)
    const client = await ConversationClient.open(node, "assistant", key)
    client.update({ audio: { input: { transcription: { model: "listener" } } } })
    await client.speak(noise(1, 5))
    client.send({ type: "input_audio_buffer.commit" })
    await client.nth("conversation.item.input_audio_transcription.completed")
    await eventually(async () => (await receiptsOf(node, orgId)).length === 1, "it is charged")
    expect((await receiptsOf(node, orgId)).map(({ model }) => model)).toEqual(["listener"])
    client.send({
      type: "session.update",
      session: { type: "realtime", audio: { input: { transcription: { model: "unheard-of" } } } },
    })
    expect((await client.nth("error")).error).toMatchObject({ code: "ModelNotLoaded" })
    client.close()
  })

  it("is listed with its kind, and is no model of another endpoint", async () => {
    const { data } = (await get("/v1/models")) as { data: ReadonlyArray<{ id: string; kind: string }> }
    expect(data.slice(-2)).toMatchObject([
      { id: "assistant", kind: "conversation", object: "model", owned_by: "test", root: "assistant" },
      { id: "plain", kind: "conversation" },
    ])
    expect(await get("/v1/models/assistant")).toEqual(data.at(-2))
    const chat = await node.post("/v1/chat/completions", {
      model: "assistant",
      messages: [{ role: "user", content: "hi" }],
    })
    expect([chat.status, await chat.json()]).toMatchObject([
      400,
      { detail: expect.stringContaining("assistant") },
    ])
  })

  it("leaves text models and unknown names as they are", async () => {
    const client = await ConversationClient.open(node, "fake")
    expect(sessionOf(client)).toMatchObject({ model: "fake", instructions: "" })
    client.close()
    const refused = await SocketClient.connect(
      `${node.socketBase}/v1/realtime?model=unheard-of&token=${node.keys.dev}`,
    )
    expect(refused).toMatchObject({ status: 404 })
  })
})

describe("a reload", () => {
  it("changes what new sessions get; open ones keep their models, and an answer of a removed one fails", async () => {
    const client = await ConversationClient.open(node, "assistant")
    const changed = {
      ...assistant,
      conversation: { ...assistant.conversation, text: "fake", voice: "marin" },
    }
    const record = await reload(node, [...models, changed])
    expect(record).toMatchObject({ changed: ["assistant"], removed: ["plain"], unchanged: models.length })
    client.say(script({ tokens: 1, text: "Still here." }))
    client.send({ type: "response.create" })
    expect((await client.nth("response.done")).response.status).toBe("completed")
    const next = await ConversationClient.open(node, "assistant")
    expect(sessionOf(next)).toMatchObject({ audio: { output: { voice: "marin" } } })
    next.close()
    await reload(node, [...models.filter(({ id }) => id !== "second"), changed])
    client.send({ type: "response.create" })
    expect((await client.nth("response.done", 2)).response).toMatchObject({
      status: "failed",
      status_details: { error: { code: "ModelNotLoaded" } },
    })
    client.close()
    await reload(node, both)
  })

  it("with a conversation whose model is gone is refused, and the old catalog stays", async () => {
    writeCatalog(node.catalog, [...models.filter(({ id }) => id !== "choir"), assistant])
    const { status, stderr } = await edgewise(["models", "check", "--catalog", node.catalog], {
      EDGEWISE_DATA_DIR: node.dataDir,
    })
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining(
        'assistant: conversation.speech: "choir" is not a model of this catalog; allowed are fake-voice',
      ),
    ])
    const client = await ConversationClient.open(node, "assistant")
    client.close()
    writeCatalog(node.catalog, both)
  })

  it("shows them in `models list`, and `models remove` refuses a model that one joins", async () => {
    const at = { EDGEWISE_DATA_DIR: node.dataDir }
    const list = await edgewise(["models", "list", "--catalog", node.catalog, "--json"], at)
    const rows = (JSON.parse(list.stdout) as { models: ReadonlyArray<{ id: string }> }).models
    expect(rows.at(-1)).toMatchObject({
      id: "plain",
      kind: "conversation",
      status: "joins listener, fake, fake-voice",
    })
    const kept = await edgewise(["models", "remove", "choir", "--catalog", node.catalog], at)
    expect([kept.status, kept.stderr]).toEqual([2, expect.stringContaining("conversation.speech")])
    const gone = await edgewise(["models", "remove", "plain", "--catalog", node.catalog], at)
    expect([gone.status, gone.stdout]).toEqual([0, expect.stringContaining("plain is removed")])
    writeCatalog(node.catalog, both)
  })
})
