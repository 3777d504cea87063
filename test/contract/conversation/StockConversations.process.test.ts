// Clients of OpenAI's realtime protocol as they are published, each through a spoken answer, a function and an interruption: no
// error, and every answer ends once with a usage.
import { RealtimeAgent, RealtimeSession, tool } from "@openai/agents-realtime"
import OpenAI from "openai"
import { OpenAIRealtimeWS } from "openai/realtime/ws"
import type { RealtimeServerEvent } from "openai/resources/realtime/realtime"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import { voice } from "../../support/audio/Voice.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  // OpenAI's client always connects with TLS.
  node = await startNode({ models: [listener(), fakeModel, fakeVoice], tls: true })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

type Frame = Readonly<Record<string, unknown>>
const script = (steps: object) => `fake:${JSON.stringify(steps)}`
/** A minute of speech: longer than a busy machine takes to interrupt it. */
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
const agent = script({
  steps: [
    { calls: [{ name: "get_time", arguments: { city: "Rome" } }] },
    { tokens: 1, text: "It is noon there." },
  ],
})
const speech = Buffer.concat([Buffer.alloc(48_000), voice(1.3), Buffer.alloc(48_000)])

const pieces = function* (pcm: Buffer) {
  for (let at = 0; at < pcm.length; at += 960) yield pcm.subarray(at, at + 960)
}

const transcripts = (frames: ReadonlyArray<Frame>): ReadonlyArray<unknown> =>
  frames.flatMap(({ transcript, type }) =>
    type === "response.output_audio_transcript.done" ? [transcript] : [],
  )

const doneStatuses = (frames: ReadonlyArray<Frame>): ReadonlyArray<unknown> =>
  frames.flatMap(({ response, type }) => (type === "response.done" ? [(response as Frame).status] : []))

const spokenEvents = (frames: ReadonlyArray<Frame>): number =>
  frames.filter(({ type }) => type === "response.output_audio.delta").length

const isOver = (frames: ReadonlyArray<Frame>, answers: number) => doneStatuses(frames).length >= answers

/** Nothing went wrong, the interrupted answer is cut, and the speech was answered. */
const holds = (frames: ReadonlyArray<Frame>) => {
  expect(frames.filter(({ type }) => type === "error")).toEqual([])
  expect(brokenOrders(frames)).toEqual([])
  expect(doneStatuses(frames)).toEqual(["completed", "completed", "cancelled", "completed"])
  const [spoken, cut] = transcripts(frames)
  expect(spoken).toBe("It is noon there.")
  expect(long.startsWith(String(cut))).toBe(true)
  expect(String(cut).length).toBeLessThan(long.length)
}

describe("stock clients", () => {
  it("openai: OpenAIRealtimeWS", async () => {
    const client = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1` })
    const realtime = new OpenAIRealtimeWS({ model: "gpt-realtime" }, client)
    const frames: Array<Frame> = []
    realtime.on("event", (event: RealtimeServerEvent) => frames.push(event as unknown as Frame))
    realtime.on("error", () => {})
    await eventually(() => frames.length > 0, "the session begins")
    const say = (text: string) => {
      const content = [{ type: "input_text" as const, text }]
      realtime.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } })
      realtime.send({ type: "response.create" })
    }
    realtime.send({
      type: "session.update",
      session: {
        type: "realtime",
        tools: [{ type: "function", name: "get_time", parameters: { type: "object", properties: {} } }],
        audio: { input: { turn_detection: { type: "server_vad", silence_duration_ms: 300 } } },
      },
    })
    realtime.on("response.function_call_arguments.done", ({ arguments: args, call_id }) => {
      expect(JSON.parse(args)).toEqual({ city: "Rome" })
      realtime.send({
        type: "conversation.item.create",
        item: { type: "function_call_output", call_id, output: "noon" },
      })
    })
    say(agent)
    await eventually(() => isOver(frames, 1), "the function is called")
    realtime.send({ type: "response.create" })
    await eventually(() => isOver(frames, 2), "the answer is given")
    const before = spokenEvents(frames)
    say(script({ tokens: 1, text: long }))
    await eventually(() => spokenEvents(frames) > before + 3, "it speaks")
    for (const piece of pieces(speech))
      realtime.send({ type: "input_audio_buffer.append", audio: piece.toString("base64") })
    await eventually(() => isOver(frames, 4), "the speech is answered")
    holds(frames)
    realtime.close()
  })

  it("@openai/agents-realtime: an agent with a tool", async () => {
    const cities: Array<string> = []
    const get_time = tool({
      name: "get_time",
      description: "The time in a city",
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        cities.push(city)
        return "noon"
      },
    })
    const session = new RealtimeSession(new RealtimeAgent({ name: "Helper", tools: [get_time] }), {
      transport: "websocket",
      model: "gpt-realtime-2.1",
    })
    const frames: Array<Frame> = []
    const errors: Array<unknown> = []
    let interruptions = 0
    session.transport.on("*", (event: Frame) => frames.push(event))
    session.on("error", (error) => errors.push(error))
    session.on("audio_interrupted", () => interruptions++)
    const url = `${node.socketBase}/v1/realtime?model=gpt-realtime-2.1`
    await session.connect({ apiKey: node.keys.dev, url })
    session.sendMessage(agent)
    await eventually(() => isOver(frames, 2), "the tool is called and the answer given")
    const before = spokenEvents(frames)
    session.sendMessage(script({ tokens: 1, text: long }))
    await eventually(() => spokenEvents(frames) > before + 3, "it speaks")
    for (const piece of pieces(speech)) session.sendAudio(new Uint8Array(piece).buffer)
    await eventually(() => isOver(frames, 4), "the speech is answered")
    expect(cities).toEqual(["Rome"])
    expect(errors).toEqual([])
    expect(interruptions).toBeGreaterThanOrEqual(1)
    // Its `truncate` stands behind the last of the audio, which is read after the turn has ended.
    await eventually(
      () => frames.some(({ type }) => type === "conversation.item.truncated"),
      "the interrupted answer is cut",
    )
    holds(frames)
    session.close()
  })
})
