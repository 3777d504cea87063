// What a client can make a node hold on `/v1/realtime`: every text has a limit, items, settings and audio are counted for a user over
// all sockets, what is over it is an error event, and the session goes on. Events are counted by what they cost.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { realtimeBudget } from "#api/live/SocketShare.ts"
import { maxItemBytes } from "#domain/conversation/History.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener, noise } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { inLong, runs } from "../../support/groups/Runs.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const mib = 1024 * 1024
/** 16 MiB for the node, so 8 MiB for its only user. */
const realtime = realtimeBudget(64 * mib)

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice], realtime })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const byHand = { output_modalities: ["text"], audio: { input: { turn_detection: null } } }
const opened: Array<ConversationClient> = []
const open = async (token?: string) => {
  const client = await ConversationClient.open(node, "gpt-realtime", token)
  opened.push(client)
  return client
}
/** Every socket is gone, with all that it held. */
const allIsGivenBack = () => {
  for (const client of opened.splice(0)) client.client.vanish()
  return eventually(() => realtime.memory.held === 0, "nothing is held")
}
afterEach(allIsGivenBack)
const message = (text: string) => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
})

const answers = async (client: ConversationClient, items = 1) => {
  const before = client.of("response.done").length
  client.update(byHand)
  for (let at = 0; at < items; at++) client.say(`fake:${JSON.stringify({ tokens: 1, text: "Still here." })}`)
  client.send({ type: "response.create" })
  expect((await client.nth("response.done", before + 1)).response).toMatchObject({ status: "completed" })
}

describe("texts", () => {
  it("ten items whose call_id has 4 MiB: each is refused, and nothing of them is held", async () => {
    const client = await open()
    const held = realtime.memory.held
    const call_id = "x".repeat(4_190_000)
    for (let at = 0; at < 10; at++) {
      client.send({
        type: "conversation.item.create",
        event_id: `c${at}`,
        item: { type: "function_call_output", call_id, output: "" },
      })
      // One after the other: what is not read yet is bounded by the transport.
      await client.nth("error", at + 1)
    }
    for (const [at, { error }] of client.of("error").entries())
      expect(error).toMatchObject({
        type: "invalid_request_error",
        code: "InvalidRequest",
        param: expect.stringMatching(/call_id$|^event$/),
        event_id: `c${at}`,
      })
    await eventually(() => realtime.memory.held === held, "nothing of them is held")
    await answers(client)
  })

  const long = "x".repeat(300_000)
  const tool = (more: object) => ({ type: "function", name: "look", ...more })
  const created = (item: object) => ({ type: "conversation.item.create", item })
  const updated = (session: object) => ({ type: "session.update", session: { type: "realtime", ...session } })
  it.each([
    ["event_id", { type: "input_audio_buffer.clear", event_id: long }],
    ["type", { type: long }],
    ["item.call_id", created({ type: "function_call", name: "look", arguments: "{}", call_id: long })],
    ["item.call_id", created({ type: "function_call_output", output: "", call_id: long })],
    ["item.name", created({ type: "function_call", name: long, arguments: "{}" })],
    ["item.arguments", created({ type: "function_call", name: "look", arguments: long })],
    ["item.output", created({ type: "function_call_output", call_id: "a", output: long })],
    ["item.id", created({ ...message("hello"), id: long })],
    ["item.content[0].text", created(message(long))],
    [
      "item.content[0].detail",
      created({
        type: "message",
        role: "user",
        content: [{ type: "input_image", image_url: "a", detail: long }],
      }),
    ],
    ["previous_item_id", { ...created(message("hello")), previous_item_id: long }],
    ["item_id", { type: "conversation.item.retrieve", item_id: long }],
    ["item_id", { type: "conversation.item.delete", item_id: long }],
    ["item_id", { type: "conversation.item.truncate", item_id: long, content_index: 0, audio_end_ms: 0 }],
    ["response_id", { type: "response.cancel", response_id: long }],
    ["response.instructions", { type: "response.create", response: { instructions: long } }],
    [
      "response.tools[0].description",
      { type: "response.create", response: { tools: [tool({ description: long })] } },
    ],
    ["response.metadata.a", { type: "response.create", response: { metadata: { a: long } } }],
    ["session.instructions", updated({ instructions: long })],
    ["session.tools[0].description", updated({ tools: [tool({ description: long })] })],
    ["session.tools[0].type", updated({ tools: [{ type: long, name: "look" }] })],
    ["session.tools", updated({ tools: [tool({ parameters: { a: long.repeat(4) } })] })],
    [
      "session.tools",
      updated({ tools: [tool({ parameters: { a: Array.from({ length: 20_000 }, () => []) } })] }),
    ],
    ["session.tool_choice", updated({ tool_choice: long })],
    ["session.include[0]", updated({ include: [long] })],
    ["session.audio.output.voice", updated({ audio: { output: { voice: long } } })],
    [
      "session.audio.input.transcription.model",
      updated({ audio: { input: { transcription: { model: long } } } }),
    ],
    [
      "session.audio.input.transcription.prompt",
      updated({ audio: { input: { transcription: { prompt: long } } } }),
    ],
    [
      "session.audio.input.transcription.keywords",
      updated({
        audio: { input: { transcription: { keywords: Array.from({ length: 1_001 }, () => "a") } } },
      }),
    ],
    [
      "session.audio.input.transcription.languages",
      updated({
        audio: { input: { transcription: { languages: Array.from({ length: 4_000 }, () => "en") } } },
      }),
    ],
  ])("%s: too long is an error that names it, and changes nothing", async (param, event) => {
    const client = await open()
    await client.nth("session.created")
    const held = realtime.memory.held
    client.send({ event_id: "mine", ...event })
    const { error } = await client.nth("error")
    expect(error).toMatchObject({
      code: "InvalidRequest",
      param,
      event_id: param === "event_id" ? null : "mine",
    })
    expect(error.message.length).toBeLessThan(300)
    // An event is held until its answer is written, which this client may read first.
    await eventually(() => realtime.memory.held === held, "nothing of it is held")
  })
})

describe("a budget", () => {
  it("of a user over all sockets: items, instructions and audio count, deleting gives room, others are not touched", async () => {
    const clients = [await open(), await open(), await open()]
    const [first, second, third] = clients as [ConversationClient, ConversationClient, ConversationClient]
    const text = "x".repeat(195_000)
    // The user may hold half of what is free: a third of all.
    let sent = 0
    while (first.of("error").length + second.of("error").length === 0) {
      const client = sent % 2 === 0 ? first : second
      client.send({ type: "conversation.item.create", event_id: `i${sent}`, item: message(text) })
      sent++
      await client.client.until(
        () =>
          client.of("conversation.item.done").length + client.of("error").length ===
          Math.ceil((sent + (client === first ? 0 : -1)) / 2),
      )
    }
    const { error } = (first.of("error")[0] ?? second.of("error")[0])!
    expect(error).toMatchObject({ code: "InvalidRequest", param: "item", event_id: `i${sent - 1}` })
    expect(error.message).toMatch(
      /this user hold more than \d+ bytes.*delete items, end sockets or try again later/,
    )
    expect(sent * 195_000).toBeGreaterThan((16 * mib) / 3 - mib)
    expect(realtime.memory.held).toBeLessThanOrEqual((16 * mib) / 3 + mib)
    // Neither instructions nor audio find room on a third socket of the user; the session stays as it is.
    third.send({ type: "session.update", event_id: "s", session: { type: "realtime", instructions: text } })
    expect((await third.nth("error")).error).toMatchObject({
      event_id: "s",
      param: expect.stringMatching(/session|event/),
    })
    third.update(byHand)
    expect((await third.nth("session.updated")).session).toMatchObject({ instructions: "" })
    third.send({ type: "input_audio_buffer.append", event_id: "a", audio: noise(20, 3).toString("base64") })
    expect((await third.nth("error", 2)).error).toMatchObject({
      event_id: "a",
      param: expect.stringMatching(/audio|event/),
    })
    // Deleting gives room, and everything goes on.
    const [added] = first.of("conversation.item.added") as unknown as [{ item: { id: string } }]
    first.send({ type: "conversation.item.delete", item_id: added.item.id })
    await first.nth("conversation.item.deleted")
    await answers(first)
    // Another user of another organization has room for as much as is left to one.
    const other = await open(node.keys.credit)
    for (let at = 0; at < 10; at++) other.say(text)
    await other.nth("conversation.item.done", 10)
    expect(other.of("error")).toEqual([])
    // The user's limit has become smaller by that. Answers go on; what is added waits for room.
    await answers(second, 0)
  })

  it("of a conversation: its items", inLong, async () => {
    const roomy = await startNode({
      models: [listener(), fakeModel, fakeVoice],
      realtime: realtimeBudget(1024 * mib),
    })
    await untilLoaded(roomy, "listener", "fake", "fake-voice")
    const client = await ConversationClient.open(roomy)
    const text = "x".repeat(199_000)
    const fits = Math.floor(maxItemBytes / 200_000)
    for (let at = 0; at < fits + 3; at++) client.say(text)
    await client.client.until(
      () => client.of("conversation.item.done").length + client.of("error").length >= fits + 3,
    )
    const [{ error }] = client.of("error") as unknown as [{ error: { message: string } }]
    expect(error).toMatchObject({ code: "InvalidRequest", param: "item" })
    expect(error.message).toContain(`larger than ${maxItemBytes} bytes: delete items`)
    await roomy.stop()
  })
})

describe("events", () => {
  const padded = `{"type":"input_audio_buffer.clear"${" ".repeat(400)}}`
  it.each(["model=gpt-realtime", "intent=transcription"].slice(0, runs(1, 2)))(
    "padded ones are counted: 1,900 end the connection with what is allowed (%s)",
    async (query) => {
      const client = await SocketClient.open(`${node.socketBase}/v1/realtime?${query}&token=${node.keys.dev}`)
      for (let at = 0; at < 1_900; at++) client.socket.send(padded)
      expect(await client.closed).toEqual({ code: 1008, reason: "too many events" })
      expect(client.frames.at(-1)).toMatchObject({
        type: "error",
        error: { code: "too_many_events", message: expect.stringContaining("50 a second") },
      })
    },
  )

  it("a client that reads nothing is not read: echoes do not pile up", async () => {
    const [client, other] = [await open(), await open()]
    await other.nth("session.created")
    client.client.socket.pause()
    // 6 MB of events, which would be answered with 12 MB, more than the sockets of both sides hold.
    for (let at = 0; at < 30; at++) client.say("x".repeat(199_000))
    for (let at = 0; at < 40; at++) {
      other.send({ type: "conversation.item.retrieve", item_id: "none" })
      await other.nth("error", at + 1)
    }
    expect(realtime.memory.held).toBeLessThan(5 * mib)
    client.client.socket.resume()
    await client.client.until(
      () => client.of("conversation.item.done").length + client.of("error").length === 30,
    )
  })
})
