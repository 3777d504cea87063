// Clients of a conversation that send too much, read nothing, or ask for what cannot be: each event gets an error with type, code, param
// and its id, the conversation goes on, and others on the node are served.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { itemCost, smallEvents } from "#api/live/EventReader.ts"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener, noise } from "../../support/clients/LiveClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const script = (steps: Readonly<Record<string, unknown>>) => `fake:${JSON.stringify(steps)}`
/** An answer of minutes, which a test cancels. */
const endless = script({ tokens: 4_000, tokenMs: 20 })
const open = () => ConversationClient.open(node)
const written = { output_modalities: ["text"], audio: { input: { turn_detection: null } } }

const goesOn = async (client: ConversationClient, answers: number) => {
  client.update(written)
  client.say(script({ tokens: 1, text: "Still here." }))
  client.send({ type: "response.create" })
  expect((await client.nth("response.done", answers)).response).toMatchObject({
    status: "completed",
    output: [{ content: [{ text: "Still here." }] }],
  })
  expect(brokenOrders(client.client.frames)).toEqual([])
}

/** The only error so far, which has all of its fields. */
const onlyError = async (client: ConversationClient) => {
  const { error } = await client.nth("error")
  expect(Object.keys(error).toSorted()).toEqual(["code", "event_id", "message", "param", "type"])
  expect(client.of("error")).toHaveLength(1)
  return error
}

describe("too much", () => {
  it(
    "audio that comes faster than it can be transcribed: the turns are bounded, and another client is heard",
    inLong,
    async () => {
      const [client, other] = [await open(), await open()]
      client.update({
        audio: {
          input: { turn_detection: { type: "server_vad", create_response: false, silence_duration_ms: 20 } },
        },
      })
      // 90 s of short turns in one burst: events of a second each.
      const second = Buffer.concat([voice(0.27, 3), Buffer.alloc(28_800)])
      for (let sent = 0; sent < 90; sent++)
        client.send({
          type: "input_audio_buffer.append",
          event_id: `a${sent}`,
          audio: second.toString("base64"),
        })
      other.update({ audio: { input: { turn_detection: null, transcription: {} } } })
      await other.speak(noise(1, 5))
      other.send({ type: "input_audio_buffer.commit" })
      await other.nth("conversation.item.input_audio_transcription.completed")
      client.send({ type: "conversation.item.retrieve", event_id: "last", item_id: "none" })
      await client.client.until(() => client.of("error").some(({ error }) => error.event_id === "last"))
      // Refused audio names its event, and what was refused is no turn.
      for (const { error } of client.of("error").slice(0, -1))
        expect(error).toMatchObject({
          type: "invalid_request_error",
          param: "audio",
          event_id: expect.stringMatching(/^a\d+$/),
        })
      await goesOn(client, 1)
      client.close()
      other.close()
    },
  )

  it(
    "10,000 items at once: 2,000 are taken, and more end the connection with what is allowed",
    inLong,
    async () => {
      const [client, other] = [await open(), await open()]
      const startMs = performance.now()
      for (let at = 0; at < 10_000; at++) client.say("x".repeat(300))
      expect(await client.client.closed).toEqual({ code: 1008, reason: "too many events" })
      const allowed = (events: number) => events / itemCost
      const taken = client.of("conversation.item.done").length
      expect(taken).toBeGreaterThanOrEqual(allowed(smallEvents.burst))
      const seconds = (performance.now() - startMs) / 1_000
      expect(taken).toBeLessThanOrEqual(allowed(smallEvents.burst + smallEvents.perSecond * seconds) + 1)
      expect(client.of("error").at(-1)).toMatchObject({
        error: { code: "too_many_events", message: expect.stringContaining("a new item as a quarter") },
      })
      await goesOn(other, 1)
      other.close()
    },
  )

  it("a client that never reads is disconnected, and its answers end", inLong, async () => {
    const strict = await startNode({
      models: [listener(), fakeModel, fakeVoice],
      transport: { stallTimeoutMs: 200 },
    })
    await untilLoaded(strict, "listener", "fake", "fake-voice")
    const client = await ConversationClient.open(strict)
    client.update({ audio: { output: { pacing: "none" } } })
    await client.nth("session.updated")
    client.client.socket.pause()
    // A minute of speech is 4 MB of events.
    const text = Array.from({ length: 400 }, (_, at) => `Sentence number ${at} is here.`).join(" ")
    client.say(script({ tokens: 1, text }))
    client.send({ type: "response.create" })
    await untilIdle(strict)
    client.client.socket.resume()
    const { code } = await client.client.closed
    expect([1006, 1013]).toContain(code)
    expect(client.of("response.done")).toEqual([])
    await strict.stop()
  })
})

describe("what cannot be", () => {
  it("the output of a call that the conversation does not have: it is not added, and answers go on", async () => {
    const client = await open()
    const output = (call_id: string) => ({
      type: "conversation.item.create",
      event_id: "output",
      item: { type: "function_call_output", call_id, output: "noon" },
    })
    client.send(output("call_none"))
    expect(await onlyError(client)).toMatchObject({
      code: "invalid_tool_call_id",
      param: "item.call_id",
      event_id: "output",
    })
    expect(client.of("conversation.item.added")).toEqual([])
    // The client's own history, of which it then deletes the call.
    const call = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" }
    client.send({ type: "conversation.item.create", item: { id: "call", ...call } })
    client.send(output("call_1"))
    client.send({ type: "conversation.item.delete", item_id: "call" })
    await client.nth("conversation.item.deleted")
    expect(client.of("conversation.item.added")).toHaveLength(2)
    await goesOn(client, 1)
    client.close()
  })

  it.each([
    ["user", { type: "output_text", text: "a" }, "must be input_text, input_audio or input_image"],
    ["system", { type: "output_text", text: "a" }, "must be input_text"],
    ["assistant", { type: "input_text", text: "a" }, "must be output_text or output_audio"],
  ])("a part of another role in a message of the %s", async (role, part, problem) => {
    const client = await open()
    const text = { type: "text", text: "a" }
    const item = { type: "message", role, content: [text, part] }
    client.send({ type: "conversation.item.create", item })
    expect(await onlyError(client)).toMatchObject({
      param: "item.content[1].type",
      message: expect.stringContaining(problem),
    })
    client.close()
  })

  it("a function without a name", async () => {
    const client = await open()
    client.update({ tools: [{ type: "function", parameters: {} }], tool_choice: "required" })
    expect(await onlyError(client)).toMatchObject({
      param: "session.tools[0].name",
      message: expect.stringContaining("is required"),
    })
    // Tools of other servers have no effect and need none.
    client.update({ tools: [{ type: "mcp", server_label: "a" }] })
    await client.nth("session.updated")
    client.close()
  })

  it("two answers at once", async () => {
    const client = await open()
    client.update(written)
    client.say(endless)
    client.send({ type: "response.create" })
    client.send({ type: "response.create", event_id: "second" })
    expect(await onlyError(client)).toMatchObject({
      type: "invalid_request_error",
      code: "conversation_already_has_active_response",
      param: null,
      event_id: "second",
    })
    client.send({ type: "response.cancel" })
    await client.nth("response.done")
    await goesOn(client, 2)
    client.close()
  })

  it("more answers beside the conversation than four", async () => {
    const client = await open()
    client.update(written)
    const input = [
      {
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: endless }],
      },
    ]
    for (let at = 0; at < 5; at++)
      client.send({ type: "response.create", event_id: `r${at}`, response: { conversation: "none", input } })
    expect(await onlyError(client)).toMatchObject({ param: "response.conversation", event_id: "r4" })
    await client.nth("response.created", 4)
    for (const { response } of client.of("response.created"))
      client.send({ type: "response.cancel", response_id: response.id })
    await client.nth("response.done", 4)
    await goesOn(client, 5)
    client.close()
  })

  it("the end of an item of the user, or of a written answer", async () => {
    const client = await open()
    client.update(written)
    client.say(script({ tokens: 1 }))
    client.send({ type: "response.create" })
    const { response } = await client.nth("response.done")
    const ids = [client.of("conversation.item.added")[0]!.item.id, response.output![0]!.id]
    for (const [at, item_id] of ids.entries())
      client.send({
        type: "conversation.item.truncate",
        event_id: `t${at}`,
        item_id,
        content_index: 0,
        audio_end_ms: 5,
      })
    await client.nth("error", 2)
    expect(client.of("error").map(({ error }) => error)).toMatchObject(
      ids.map((_, at) => ({ code: "item_truncate_invalid_item_id", param: "item_id", event_id: `t${at}` })),
    )
    await goesOn(client, 2)
    client.close()
  })

  it("another voice once there is audio", async () => {
    const client = await open()
    client.update({ audio: { output: { pacing: "none", voice: "alloy" } } })
    client.say(script({ tokens: 1, text: "Hello there." }))
    client.send({ type: "response.create" })
    await client.nth("response.done")
    client.send({
      type: "session.update",
      event_id: "voice",
      session: { type: "realtime", instructions: "changed", audio: { output: { voice: "marin" } } },
    })
    expect(await onlyError(client)).toMatchObject({
      code: "cannot_update_voice",
      param: "session.audio.output.voice",
      event_id: "voice",
    })
    // Nothing of the refused update counts, and the voice that it has may be named.
    client.update({ audio: { output: { voice: "alloy" } } })
    expect((await client.nth("session.updated", 2)).session).toMatchObject({ instructions: "" })
    await goesOn(client, 2)
    client.close()
  })
})
