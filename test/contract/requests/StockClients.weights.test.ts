// pipecat, LiveKit and Open WebUI with only address and key set: the bytes that they send, and answers that they
// can use, on the built-in weights.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type Clip, clipBytes, clipSamples, clips } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { headerOf, jsonOf, rawRequest } from "../../support/clients/RawHttp.ts"
import { RawWebSocket } from "../../support/clients/RawWebSocket.ts"
import {
  appendEvent,
  commitEvent,
  liveKitPrewarm,
  realtimeCases,
  speechCases,
  transcriptionCases,
  type Wire,
} from "../../support/clients/StockClients.ts"
import { whisper } from "../../support/clients/TranscriptionClient.ts"
import { presetModel, speak } from "../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
let wire: Wire
beforeAll(async () => {
  node = await startNode({ models: [presetModel, whisper] })
  wire = { port: node.port, key: node.keys.dev }
  await untilLoaded(node, "tts-82m", whisper.id)
})
/** Sockets of a test, closed whether it fails or not. */
const sockets: Array<RawWebSocket> = []
afterEach(() => {
  for (const { connection } of sockets.splice(0)) connection.destroy()
})
afterAll(() => node.stop())

// Two sentences, all of whose words the built-in weights recognise.
const clip = clips[10] as Clip
const isHeard = (heard: string): void =>
  expect(wordErrorRate([{ reference: clip.text, heard }])).toBeLessThan(0.3)

/** The audio of `speech.audio.delta`s, as OpenAI's clients read it. */
const audioOfEvents = (body: Buffer): Buffer =>
  Buffer.concat(
    body
      .toString()
      .split("\n\n")
      .filter((frame) => frame !== "")
      .map((frame) => JSON.parse(frame.replace(/^data: /, "")) as { type: string; audio?: string })
      .map(({ audio = "" }) => Buffer.from(audio, "base64")),
  )

describe("speech", () => {
  const text = 'He said: "Please open the window." It is warm in here; no one has left.'

  it.each(speechCases)("of $client", async ({ means, request }) => {
    const reply = await rawRequest(node.port, request(wire, text))
    expect([reply.status, reply.complete]).toEqual([200, true])
    const { response_format } = means
    const isEvents = headerOf(reply, "content-type")?.startsWith("text/event-stream") === true
    const body = isEvents ? audioOfEvents(reply.body) : reply.body
    // LiveKit asks for events; the others do not.
    expect(isEvents).toBe(request(wire, text).includes('"sse"'))
    if (!isEvents)
      expect(headerOf(reply, "content-type")).toBe(response_format === "pcm" ? "audio/pcm" : "audio/mpeg")
    expect(headerOf(reply, "content-encoding")).toBeUndefined()
    const isChunked = response_format === "pcm" || isEvents
    expect(headerOf(reply, "transfer-encoding")).toBe(isChunked ? "chunked" : undefined)
    const own = await speak(node, { model: "tts-82m", input: text, ...means })
    expect(body.length).toBeGreaterThan(10_000)
    expect(body.equals(own.body)).toBe(true)
  })

  it("of LiveKit begins with a request that may fail, on the same connection", async () => {
    const { status } = await rawRequest(node.port, liveKitPrewarm(wire))
    expect(status).toBe(404)
  })
})

describe("transcription", () => {
  it.each(transcriptionCases)("of $client", async ({ probabilities, request, verbose }) => {
    const reply = await rawRequest(node.port, request(wire, clipBytes(clip)))
    expect([reply.status, reply.complete]).toEqual([200, true])
    expect(headerOf(reply, "content-type")).toMatch(/^application\/json/)
    const answer = jsonOf(reply) as Readonly<Record<string, unknown>>
    isHeard(String(answer.text))
    const keys = probabilities === true ? ["text", "logprobs"] : ["text"]
    if (!verbose) return expect(Object.keys(answer)).toEqual(keys)
    expect(answer).toMatchObject({ language: "en", duration: expect.closeTo(clip.seconds, 1) })
    expect(answer.segments).toContainEqual(
      expect.objectContaining({ avg_logprob: expect.any(Number), no_speech_prob: expect.any(Number) }),
    )
  })
})

describe("realtime transcription", () => {
  /** The clip at 24 kHz, linearly interpolated, with silence behind it. */
  const pcm = (): Buffer => {
    const samples = clipSamples(clip)
    const spoken = Int16Array.from({ length: Math.floor(samples.length * 1.5) - 2 }, (_, i) => {
      const at = i / 1.5
      const [left, right] = [samples[Math.floor(at)]!, samples[Math.floor(at) + 1] ?? 0]
      return Math.round(left + (right - left) * (at % 1))
    })
    return Buffer.concat([Buffer.from(spoken.buffer), Buffer.alloc(24_000 * 2)])
  }
  const completed = "conversation.item.input_audio_transcription.completed"

  it.each(realtimeCases)("of $client", async ({ commits, handshake, update }) => {
    const socket = await RawWebSocket.open(node.port, handshake(wire))
    sockets.push(socket)
    expect(socket.head).toMatch(/^HTTP\/1\.1 101 /)
    expect(await socket.next()).toMatchObject({ type: "session.created" })
    await socket.send(update)
    const [updated] = await socket.until("session.updated")
    expect(updated).toMatchObject({
      session: {
        type: "transcription",
        audio: {
          input: {
            format: { type: "audio/pcm", rate: 24_000 },
            transcription: { model: whisper.id, language: "en" },
            turn_detection: commits
              ? null
              : { type: "server_vad", prefix_padding_ms: 600, silence_duration_ms: 350 },
          },
        },
      },
    })
    const audio = pcm()
    for (let at = 0; at < audio.length; at += 2_400) {
      await socket.send(appendEvent(audio.subarray(at, at + 2_400)))
    }
    if (commits) await socket.send(commitEvent)
    // The server may find a turn in each sentence; their transcripts come in any order.
    const committed: Array<unknown> = []
    const transcripts = new Map<unknown, string>()
    const types = new Set<unknown>()
    const text = () => committed.map((id) => transcripts.get(id) ?? "").join(" ")
    while (text().split(" ").length < clip.text.split(" ").length) {
      const event = await socket.next()
      types.add(event.type)
      if (event.type === "input_audio_buffer.committed") committed.push(event.item_id)
      if (event.type === completed) transcripts.set(event.item_id, String(event.transcript))
    }
    isHeard(text())
    expect(types).not.toContain("error")
    expect(types.has("input_audio_buffer.speech_started")).toBe(!commits)
  })
})

it("leaves nothing behind", () => untilIdle(node))
