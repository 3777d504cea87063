// GET /v1/realtime?model=…: a conversation in OpenAI's realtime protocol, its event names checked against the types of OpenAI's
// client: written and spoken answers, functions, turns by hand and by silence, interruption, and events that cannot be carried out.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { toG711 } from "#audio/G711.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener, noise } from "../../support/clients/LiveClient.ts"
import { orgWith } from "../../support/nodes/Ledger.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
  silent = untilSilence()
  // Where it fails, its test says so.
  silent.catch(() => {})
})
afterAll(() => node.stop())

/** A conversation with a silence of 5 s behind an answer, the shortest that may be set. It lasts while the other tests run. */
let silent: Promise<ConversationClient>
const untilSilence = async (): Promise<ConversationClient> => {
  const client = await open()
  client.update({
    ...written,
    audio: { input: { turn_detection: { type: "server_vad", idle_timeout_ms: 5_000 } } },
  })
  client.say(script({ tokens: 1, text: "Are you there?" }))
  client.send({ type: "response.create" })
  await client.nth("input_audio_buffer.timeout_triggered")
  return client
}

/** What an organization was charged so far for a kind of model. */
const charged = (org: string, kind: "text" | "speech") =>
  node.run(
    Effect.gen(function* () {
      const { id } = yield* (yield* Accounts).showOrg(org)
      const rows = (yield* (yield* UsageLedger).usage(id, 0)).filter((row) => row.kind === kind)
      const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0)
      return {
        requests: sum((row) => row.requests),
        outputTokens: sum((row) => row.outputTokens),
        audioMs: sum((row) => row.audioMs),
      }
    }),
  )

const open = (model?: string, key?: string) => ConversationClient.open(node, model, key)
const script = (steps: Readonly<Record<string, unknown>>) => `fake:${JSON.stringify(steps)}`
const written = { output_modalities: ["text"] }
/** Answers come as fast as they are made. */
const unpaced = { audio: { output: { pacing: "none" } } }
const byHand = { audio: { input: { turn_detection: null }, output: { pacing: "none" } } }
const look = { type: "function", name: "look", parameters: { type: "object", properties: {} } }
const silence = (seconds: number) => Buffer.alloc(seconds * 48_000)

describe("a session", () => {
  it("begins with the whole session, also for a text model by its own name", async () => {
    for (const model of ["gpt-realtime", "fake"]) {
      const client = await open(model)
      const [{ session }] = client.of("session.created") as unknown as [{ session: Record<string, unknown> }]
      expect(session).toMatchObject({
        type: "realtime",
        object: "realtime.session",
        model,
        output_modalities: ["audio"],
        audio: { input: { turn_detection: { type: "server_vad", interrupt_response: true } } },
      })
      client.close()
    }
  })

  it("merges an update and answers with the whole; a bad one changes nothing", async () => {
    const client = await open()
    client.update({ instructions: "Be brief.", tools: [look] })
    client.update({ audio: { output: { voice: "alloy", speed: 1.25 } } })
    const second = await client.nth("session.updated", 2)
    expect(second.session).toMatchObject({
      instructions: "Be brief.",
      tools: [{ name: "look" }],
      audio: { output: { voice: "alloy", speed: 1.25 } },
    })
    client.send({
      type: "session.update",
      event_id: "mine",
      session: { type: "realtime", audio: { output: { voice: "stranger" } } },
    })
    client.send({ type: "session.update", event_id: "other", session: { type: "transcription" } })
    await client.nth("error", 2)
    expect(client.of("error").map(({ error }) => error)).toMatchObject([
      { type: "invalid_request_error", param: "session.audio.output.voice", event_id: "mine" },
      { param: "session.type", event_id: "other" },
    ])
    client.update({})
    expect((await client.nth("session.updated", 3)).session).toEqual(second.session)
    client.close()
  })
})

describe("a written answer", () => {
  it("has its events in order, a usage, and is charged as a chat is", async () => {
    const client = await open(undefined, await orgWith(node, "writes", 1_000_000))
    client.update(written)
    client.say(script({ tokens: 3, text: " word", cachedTokens: 2 }))
    client.send({ type: "response.create", response: { metadata: { topic: "test" } } })
    await client.nth("response.done")
    expect(client.types.slice(2)).toEqual([
      "conversation.item.added",
      "conversation.item.done",
      "response.created",
      "response.output_item.added",
      "conversation.item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "conversation.item.done",
      "response.output_item.done",
      "response.done",
    ])
    const { response } = await client.nth("response.done")
    expect(response).toMatchObject({
      status: "completed",
      status_details: null,
      metadata: { topic: "test" },
      output: [{ role: "assistant", content: [{ type: "output_text", text: " word word word" }] }],
      usage: { output_tokens: 3, input_token_details: { cached_tokens: 2 } },
    })
    await eventually(async () => (await charged("writes", "text")).requests > 0, "the answer is charged")
    expect(await charged("writes", "text")).toMatchObject({ requests: 1, outputTokens: 3 })
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("cut by its length is incomplete, and one that fails says why", async () => {
    const client = await open()
    client.update({ ...written, max_output_tokens: 2 })
    client.say(script({ tokens: 5 }))
    client.send({ type: "response.create" })
    expect((await client.nth("response.done")).response).toMatchObject({
      status: "incomplete",
      status_details: { type: "incomplete", reason: "max_output_tokens" },
    })
    client.say(script({ tokens: 2, failAt: 1 }))
    client.send({ type: "response.create" })
    expect((await client.nth("response.done", 2)).response).toMatchObject({
      status: "failed",
      status_details: { type: "failed", error: { type: "server_error", code: "EngineFailed" } },
    })
    // The conversation goes on.
    client.say(script({ tokens: 1 }))
    client.send({ type: "response.create" })
    expect((await client.nth("response.done", 3)).response.status).toBe("completed")
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("outside of the conversation reads its own input and leaves no item", async () => {
    const client = await open()
    client.update(written)
    const input = [
      {
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: script({ tokens: 1, text: "aside" }) }],
      },
    ]
    client.send({ type: "response.create", response: { conversation: "none", input } })
    const { response } = await client.nth("response.done")
    expect(response).toMatchObject({ conversation_id: null, output: [{ content: [{ text: "aside" }] }] })
    expect(client.of("conversation.item.added")).toEqual([])
    client.close()
  })
})

describe("a spoken answer", () => {
  it("is the engine's samples in events of at most 100 ms, and charges what was sent", async () => {
    const client = await open(undefined, await orgWith(node, "speaks", 1_000_000))
    client.update(unpaced)
    client.say(script({ tokens: 1, text: "Hello there, I am here." }))
    client.send({ type: "response.create" })
    const { response } = await client.nth("response.done")
    const item = { content: [{ type: "output_audio", transcript: "Hello there, I am here." }] }
    expect(response).toMatchObject({ status: "completed", output: [item] })
    for (const { delta } of client.of("response.output_audio.delta"))
      expect(delta.length).toBeLessThanOrEqual(6_400)
    // Two pieces of text, and three pieces of the fake voice for each; its noise has no leading silence.
    expect(bytesToS16(client.audio)).toHaveLength(2 * 3 * 4_800)
    await eventually(async () => (await charged("speaks", "speech")).requests >= 2, "it is charged")
    expect((await charged("speaks", "speech")).audioMs).toBe(1_200)
    expect(client.of("response.output_audio_transcript.delta")).toMatchObject([
      { delta: "Hello there, ", start_time: 0 },
      { delta: "I am here.", start_time: 0.6 },
    ])
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("is sent about a second ahead of what is played, and ends when it has been sent", async () => {
    const client = await open()
    client.say(script({ tokens: 1, text: "One two three four. Five six seven eight. Nine ten." }))
    // Before the node's own clock starts: however late the events are noticed here, the time is not too short.
    const startMs = performance.now()
    client.send({ type: "response.create" })
    await client.nth("response.done")
    const tookMs = performance.now() - startMs
    const audioMs = client.audio.length / 48
    expect(audioMs).toBeGreaterThan(1_500)
    expect(tookMs).toBeGreaterThan(audioMs - 1_000 - 100)
    client.close()
  })

  it("whose first clause has no sound goes on: the model waits for the voice, and not for ever", async () => {
    const client = await open()
    client.update(unpaced)
    client.say(script({ tokens: 30, text: " — — — — — — —." }))
    client.send({ type: "response.create" })
    const { response } = await client.nth("response.done")
    expect(response.status).toBe("completed")
    expect(response.usage?.output_tokens).toBeGreaterThanOrEqual(30)
    client.close()
  })

  it("of which the voice cannot pronounce a piece is spoken without that piece, and its text is whole", async () => {
    const client = await open()
    client.update(unpaced)
    const unsayable = 'fake:{"refuse":"input"}'
    client.say(script({ tokens: 1, text: `Wonderful to hear. ${unsayable}` }))
    client.send({ type: "response.create" })
    const { response } = await client.nth("response.done")
    expect(response.status).toBe("completed")
    const transcript = `Wonderful to hear. ${unsayable}`
    expect(response.output).toMatchObject([{ content: [{ type: "output_audio", transcript }] }])
    expect(client.of("response.output_audio.delta").length).toBeGreaterThan(0)
    client.close()
  })

  it("is flushed by the next answer once it is written, and refused before", async () => {
    const client = await open()
    client.say(
      script({ tokens: 1, text: "One two three four. Five six seven eight. Nine ten. Eleven. Twelve." }),
    )
    client.send({ type: "response.create" })
    await client.nth("response.output_audio.delta", 3)
    client.send({ type: "response.create" })
    await client.nth("response.created", 2)
    expect(client.of("response.done")[0]!.response.status).toBe("completed")
    client.send({ type: "response.cancel" })
    await client.nth("response.done", 2)
    client.update(written)
    client.say(script({ tokens: 4_000, tokenMs: 20 }))
    client.send({ type: "response.create" })
    await client.nth("response.output_text.delta")
    client.send({ type: "response.create", event_id: "second" })
    // Not any error: on a machine that stood still the second answer may have ended before it was cancelled.
    const refusal = () => client.of("error").find(({ error }) => error.event_id === "second")
    await client.client.until(() => refusal() !== undefined)
    expect(refusal()!.error.code).toBe("conversation_already_has_active_response")
    client.send({ type: "response.cancel" })
    await client.nth("response.done", 3)
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })
})

describe("G.711", () => {
  it.each(["pcmu", "pcma"] as const)("audio/%s comes in and goes out, one byte a sample", async (law) => {
    const client = await open()
    const format = { type: `audio/${law}` }
    client.update({
      audio: {
        input: { format, transcription: {}, turn_detection: null },
        output: { format, pacing: "none" },
      },
    })
    const { session } = await client.nth("session.updated")
    expect(session).toMatchObject({ audio: { input: { format }, output: { format } } })
    // Noise of 16 kHz, taken as 8 kHz: twice as long.
    const bytes = Buffer.from(toG711(bytesToS16(noise(1, 5)), law))
    client.send({ type: "input_audio_buffer.append", audio: bytes.toString("base64") })
    client.send({ type: "input_audio_buffer.commit" })
    const heard = await client.nth("conversation.item.input_audio_transcription.completed")
    expect(heard.usage).toMatchObject({ seconds: expect.closeTo(2, 1) })
    client.say(script({ tokens: 1, text: "Hello there." }))
    client.send({ type: "response.create" })
    await client.nth("response.done")
    // 3 pieces of 4,800 samples at 24 kHz; the filter keeps the last two milliseconds.
    expect(client.audio.length).toBeGreaterThan(4_800 - 20)
    expect(client.audio.length).toBeLessThanOrEqual(4_800)
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })
})

describe("functions", () => {
  it("are called with arguments that are JSON, answered, and the answer goes on", async () => {
    const client = await open()
    client.update({ ...written, tools: [look] })
    client.say(
      script({
        steps: [{ calls: [{ name: "look", arguments: { at: "sky" } }] }, { tokens: 1, text: "I see it." }],
      }),
    )
    client.send({ type: "response.create" })
    const done = await client.nth("response.function_call_arguments.done")
    expect(JSON.parse(done.arguments)).toEqual({ at: "sky" })
    const { response } = await client.nth("response.done")
    expect(response.output).toMatchObject([
      { type: "function_call", name: "look", call_id: done.call_id, status: "completed" },
    ])
    const [added] = client.of("response.output_item.added")
    expect(added!.item).toMatchObject({ type: "function_call", name: "look", status: "in_progress" })
    client.send({
      type: "conversation.item.create",
      item: { type: "function_call_output", call_id: done.call_id, output: "blue" },
    })
    client.send({ type: "response.create" })
    const second = await client.nth("response.done", 2)
    expect(second.response.output).toMatchObject([{ content: [{ text: "I see it." }] }])
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })
})

describe("turns", () => {
  it("by hand: a commit makes an item and no answer; too little audio is no turn", async () => {
    const client = await open()
    client.update({ audio: { input: { turn_detection: null, transcription: { model: "whisper-1" } } } })
    client.send({ type: "input_audio_buffer.commit", event_id: "empty" })
    expect((await client.nth("error")).error).toMatchObject({
      code: "input_audio_buffer_commit_empty",
      event_id: "empty",
    })
    await client.speak(voice(2))
    client.send({ type: "input_audio_buffer.commit" })
    const { item_id, transcript } = await client.nth("conversation.item.input_audio_transcription.completed")
    expect(transcript).not.toBe("")
    expect(client.of("response.created")).toEqual([])
    client.send({ type: "conversation.item.retrieve", item_id })
    const frame = await client.nth("conversation.item.retrieved" as never)
    expect(frame).toMatchObject({ item: { id: item_id, content: [{ type: "input_audio", transcript }] } })
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("by silence: the turn is answered, and without transcription no transcript is sent", async () => {
    const client = await open()
    client.update({
      ...unpaced,
      audio: {
        ...unpaced.audio,
        input: { turn_detection: { type: "server_vad", silence_duration_ms: 300 } },
      },
    })
    // One stretch of speech: longer speech of this voice has a pause of half a second, which ends a turn, and what follows interrupts the answer.
    await client.speak(Buffer.concat([voice(1), silence(1)]))
    const { response } = await client.nth("response.done")
    expect(response.status).toBe("completed")
    const types = client.types
    expect(client.of("input_audio_buffer.speech_started")).toHaveLength(1)
    const order = [
      "input_audio_buffer.speech_started",
      "input_audio_buffer.speech_stopped",
      "input_audio_buffer.committed",
      "conversation.item.added",
      "conversation.item.done",
      "response.created",
    ].map((type) => types.indexOf(type))
    expect(order).toEqual([...order].sort((a, b) => a - b))
    expect(order).not.toContain(-1)
    expect(types.filter((type) => type.includes("transcription"))).toEqual([])
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("interrupt an answer: it ends after speech_started, and only what was heard of it stays", async () => {
    const client = await open()
    const text = Array.from({ length: 40 }, (_, at) => `word${at} here.`).join(" ")
    client.say(script({ tokens: 1, text }))
    client.send({ type: "response.create" })
    await client.nth("response.output_audio.delta", 5)
    await client.speak(Buffer.concat([silence(1), voice(1)]))
    await client.nth("input_audio_buffer.speech_started")
    const { response } = await client.nth("response.done")
    expect(response).toMatchObject({
      status: "cancelled",
      status_details: { type: "cancelled", reason: "turn_detected" },
      output: [{ status: "incomplete" }],
    })
    const { frames } = client.client
    const started = frames.findIndex(({ type }) => type === "input_audio_buffer.speech_started")
    const after = frames.slice(started).map(({ type }) => type)
    expect(after).not.toContain("response.output_audio.delta")
    const [item] = response.output as unknown as [{ id: string; content: [{ transcript: string }] }]
    const heard = item.content[0].transcript
    expect(text.startsWith(heard)).toBe(true)
    expect(heard.length).toBeLessThan(text.length)
    // The client knows better how much it played; a position past the end is the end. What was cut once does not come back.
    const cut = async (audio_end_ms: number, nth: number) => {
      client.send({ type: "conversation.item.truncate", item_id: item.id, content_index: 0, audio_end_ms })
      client.send({ type: "conversation.item.retrieve", item_id: item.id })
      const retrieved = await client.nth("conversation.item.retrieved" as never, nth)
      const { content } = (retrieved as unknown as { item: typeof item }).item
      return [
        (await client.nth("conversation.item.truncated", nth)).audio_end_ms,
        content[0].transcript,
      ] as const
    }
    expect((await cut(9_999_999, 1))[0]).toBe(Math.floor(client.audio.length / 48))
    const [firstMs, first] = await cut(300, 2)
    expect([firstMs, text.startsWith(first)]).toEqual([300, true])
    expect(await cut(400, 3)).toEqual([300, first])
    expect(await cut(0, 4)).toEqual([0, ""])
    expect(await cut(9_999_999, 5)).toEqual([0, ""])
    expect(brokenOrders(frames, false)).toEqual([])
    client.close()
  })
})

describe("a silence of the user", () => {
  it("after an answer makes an empty turn and another answer, where the session has a time for it", async () => {
    const client = await silent
    const { item_id } = await client.nth("input_audio_buffer.timeout_triggered")
    await client.nth("response.done", 2)
    const triggered = client.types.indexOf("input_audio_buffer.timeout_triggered")
    expect(client.types.slice(0, triggered).filter((type) => type === "response.done")).toHaveLength(1)
    expect(client.types.slice(triggered, triggered + 5)).toEqual([
      "input_audio_buffer.timeout_triggered",
      "input_audio_buffer.committed",
      "conversation.item.added",
      "conversation.item.done",
      "response.created",
    ])
    expect(client.of("input_audio_buffer.committed")[0]).toMatchObject({ item_id })
    // Speech ends the next wait.
    await client.speak(Buffer.concat([silence(1), voice(1)]))
    await client.nth("input_audio_buffer.speech_started")
    expect(brokenOrders(client.client.frames, false)).toEqual([])
    client.close()
  })
})

describe("events that cannot be carried out", () => {
  it("are answered with the client's event_id, and the conversation goes on", async () => {
    const client = await open()
    const wrong: ReadonlyArray<readonly [object, object]> = [
      [{ type: "response.cancel" }, { code: "response_cancel_not_active" }],
      [{ type: "conversation.item.retrieve", item_id: "no" }, { code: "item_retrieve_invalid_item_id" }],
      [{ type: "conversation.item.delete", item_id: "no" }, { code: "item_delete_invalid_item_id" }],
      [
        { type: "conversation.item.truncate", item_id: "no", content_index: 0, audio_end_ms: 1 },
        { code: "item_truncate_invalid_item_id" },
      ],
      [{ type: "conversation.item.create", item: { type: "message" } }, { param: "item.role" }],
      [
        {
          type: "conversation.item.create",
          previous_item_id: "no",
          item: { type: "message", role: "user", content: [] },
        },
        { param: "previous_item_id" },
      ],
      [{ type: "input_audio_buffer.append", audio: "###" }, { param: "audio" }],
      [{ type: "output_audio_buffer.clear" }, { param: "type" }],
      [{ type: 5 }, { param: "type" }],
      [{ type: "response.create", response: { output_modalities: ["audio", "text"] } }, {}],
    ]
    for (const [at, [event]] of wrong.entries()) client.send({ ...event, event_id: `e${at}` })
    client.client.socket.send("no JSON")
    await client.nth("error", wrong.length + 1)
    expect(client.of("error").map(({ error }) => error)).toMatchObject([
      ...wrong.map(([, error], at) => ({ type: "invalid_request_error", event_id: `e${at}`, ...error })),
      { event_id: null },
    ])
    client.update(byHand)
    await client.nth("session.updated")
    client.close()
  })

  it("an answer that is cancelled ends once, and a second cancel finds none", async () => {
    const client = await open()
    client.update(written)
    client.say(script({ tokens: 4_000, tokenMs: 10 }))
    client.send({ type: "response.create" })
    await client.nth("response.output_text.delta", 2)
    client.send({ type: "response.cancel" })
    client.send({ type: "response.cancel" })
    expect((await client.nth("response.done")).response).toMatchObject({
      status: "cancelled",
      status_details: { reason: "client_cancelled" },
    })
    expect((await client.nth("error")).error.message).toMatch(
      /^Cancellation failed: no active response found/,
    )
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })
})
