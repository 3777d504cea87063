// POST /v1/audio/speech as server-sent events: the same samples as the plain body, and the times of words where they are asked for.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { SpeechEvent } from "#domain/wire/events/SpeechEvents.ts"
import { headerOf, jsonOf, type RawResponse } from "../../support/clients/RawHttp.ts"
import { cloneModel, presetModel, speakWhenAdmitted } from "../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [presetModel, cloneModel] })
})
afterAll(() => node.stop())

const sse = { stream_format: "sse" }
const words = { ...sse, timestamp_granularities: ["word"] }

/** Replies are the same each time (Speech.weights.test.ts), so each is requested once. */
const said = new Map<string, Promise<RawResponse>>()
const say = (input: string, more: object): Promise<RawResponse> => {
  const body = { model: "tts-82m", voice: "af_bella", input, ...more }
  const key = JSON.stringify(body)
  const reply = said.get(key) ?? speakWhenAdmitted(node, body)
  said.set(key, reply)
  return reply
}

const eventsOf = (body: Buffer): ReadonlyArray<SpeechEvent> =>
  body
    .toString()
    .split("\n\n")
    .filter((part) => part !== "")
    .map((part) => JSON.parse(part.replace(/^data: /, "")))

const audioOf = (events: ReadonlyArray<SpeechEvent>): Buffer =>
  Buffer.concat(
    events.flatMap((event) =>
      event.type === "speech.audio.delta" ? [Buffer.from(event.audio, "base64")] : [],
    ),
  )

const wordsOf = (events: ReadonlyArray<SpeechEvent>) =>
  events.flatMap((event) => (event.type === "speech.audio.words" ? event.words : []))

const sentence =
  "It costs $25 at the **corner** of the street, and it's well known. Dr. Smith said so; everyone in the end agreed with him!"

describe("speech as events", () => {
  it("has the samples of the plain body, ends with its duration, and tells no words unasked", async () => {
    const [plain, reply] = await Promise.all([say(sentence, { stream: true }), say(sentence, sse)])
    expect(headerOf(reply, "content-type")).toBe("text/event-stream; charset=utf-8")
    const events = eventsOf(reply.body)
    expect(audioOf(events).equals(plain.body)).toBe(true)
    expect(new Set(events.slice(0, -1).map(({ type }) => type))).toEqual(new Set(["speech.audio.delta"]))
    const seconds = Math.round(plain.body.length / 48) / 1000
    expect(events.at(-1)).toEqual({ type: "speech.audio.done", usage: { type: "duration", seconds } })
  })

  it.each([
    ["tts-82m", "af_bella"],
    ["tts-82m", "bm_lewis"],
    ["tts-3b-ml", "default"],
  ])("of %s and %s tells each word of the text once, in order, inside the audio", async (model, voice) => {
    const text = `${sentence} ${sentence}`
    const events = eventsOf((await say(text, { ...words, model, voice })).body)
    const told = wordsOf(events)
    expect(told.map(({ word }) => word)).toEqual(text.split(" "))
    const seconds = audioOf(events).length / 48_000
    let before = 0
    for (const { end, start } of told) {
      expect(start).toBeGreaterThanOrEqual(before)
      expect(end).toBeGreaterThan(start)
      before = end
    }
    expect(before).toBeLessThanOrEqual(seconds + 0.001)
    // "him!" ends with the sound: the trimmed silence behind it is 40 ms, its decay a little more.
    expect(before).toBeGreaterThan(seconds - 0.25)
  })

  it("tells a word before its audio, but for the last one known", async () => {
    const events = eventsOf((await say(sentence, words)).body)
    let sent = 0
    let late = 0
    for (const event of events) {
      if (event.type === "speech.audio.delta") sent += Buffer.from(event.audio, "base64").length / 48_000
      if (event.type === "speech.audio.words")
        late += event.words.filter(({ start }) => start < sent - 0.001).length
    }
    const pieces = events.filter(({ type }) => type === "speech.audio.words").length
    expect(pieces).toBeGreaterThan(1)
    expect(late).toBeLessThanOrEqual(pieces)
  })

  it("is also Opus, with the same words", async () => {
    const [pcm, opus] = await Promise.all([
      say(sentence, words),
      say(sentence, { ...words, response_format: "opus" }),
    ])
    const events = eventsOf(opus.body)
    expect(audioOf(events).subarray(0, 4).toString()).toBe("OggS")
    expect(wordsOf(events)).toEqual(wordsOf(eventsOf(pcm.body)))
  })

  it.each(["mp3", "wav"])(
    "has the bytes of the plain body and the times of words in %s",
    async (response_format) => {
      const [plain, pcm, reply] = await Promise.all([
        say(sentence, { response_format }),
        say(sentence, words),
        say(sentence, { ...words, response_format }),
      ])
      const events = eventsOf(reply.body)
      expect(audioOf(events).equals(plain.body)).toBe(true)
      expect(wordsOf(events)).toEqual(wordsOf(eventsOf(pcm.body)))
      expect(events.at(-1)).toEqual(eventsOf(pcm.body).at(-1))
    },
  )

  it.each([
    [{ stream_format: "xml" }, "stream_format"],
    [{ timestamp_granularities: ["word"] }, "timestamp_granularities"],
    [{ ...sse, timestamp_granularities: ["segment"] }, "timestamp_granularities"],
    [{ ...sse, response_format: "flac" }, "response_format"],
  ])("refuses %j with the field's name", async (more, field) => {
    const reply = await say("One.", more)
    expect(reply.status).toBe(400)
    expect(JSON.stringify(jsonOf(reply))).toContain(field)
  })
})
