// `audio.transcriptions.create` of the official client, unmodified: every format, word times, streaming, and its
// error classes for refusals.

import { createReadStream } from "node:fs"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parseSrt, parseVtt } from "../../support/audio/Captions.ts"
import { type Clip, clipBytes, clipPath, clips } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { model, whisper } from "../../support/clients/TranscriptionClient.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
let openai: OpenAI
beforeAll(async () => {
  node = await startNode({ models: [whisper] })
  openai = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
})
afterAll(() => node.stop())

// Two sentences, all of whose words the built-in weights recognise.
const clip = clips[10] as Clip
const file = () => toFile(clipBytes(clip), "speech.wav")
const isHeard = (heard: string): void =>
  expect(wordErrorRate([{ reference: clip.text, heard }])).toBeLessThan(0.3)

describe("openai.audio.transcriptions.create", () => {
  it("json", async () => {
    const answer = await openai.audio.transcriptions.create({ model, file: await file() })
    isHeard(answer.text)
  })

  it("a file that is streamed from disk", async () => {
    const answer = await openai.audio.transcriptions.create({
      model,
      file: createReadStream(clipPath(clip)),
      language: "en",
      prompt: "Anna",
      temperature: 0,
    })
    isHeard(answer.text)
  })

  it("verbose_json with words and segments", async () => {
    const answer = await openai.audio.transcriptions.create({
      model,
      file: await file(),
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"],
    })
    isHeard(answer.text)
    expect(answer.language).toBe("en")
    expect(answer.duration).toBeCloseTo(clip.seconds, 1)
    expect(answer.words?.map(({ word }) => word).join(" ")).toBe(answer.text)
    for (const segment of answer.segments ?? []) {
      expect(segment).toEqual({
        id: expect.any(Number),
        seek: expect.any(Number),
        start: expect.any(Number),
        end: expect.any(Number),
        text: expect.any(String),
        tokens: expect.any(Array),
        temperature: expect.any(Number),
        avg_logprob: expect.any(Number),
        compression_ratio: expect.any(Number),
        no_speech_prob: expect.any(Number),
      })
    }
    expect(answer.segments?.length).toBeGreaterThan(1)
  })

  it("srt, vtt and text are strings", async () => {
    const as = async (response_format: "srt" | "vtt" | "text") =>
      // The client's own types promise a string for these.
      (await openai.audio.transcriptions.create({ model, file: await file(), response_format })) as string
    isHeard(
      parseSrt(await as("srt"))
        .map(({ text }) => text)
        .join(" "),
    )
    isHeard(
      parseVtt(await as("vtt"))
        .map(({ text }) => text)
        .join(" "),
    )
    isHeard(await as("text"))
  })

  it("stream: true", async () => {
    const stream = await openai.audio.transcriptions.create({ model, file: await file(), stream: true })
    let deltas = ""
    const done: Array<string> = []
    for await (const event of stream) {
      if (event.type === "transcript.text.delta") deltas += event.delta
      if (event.type === "transcript.text.done") done.push(event.text)
    }
    expect(done).toEqual([deltas])
    isHeard(deltas)
  })

  it("fields that other servers know do no harm", async () => {
    const answer = await openai.audio.transcriptions.create({
      model,
      file: await file(),
      include: ["logprobs"],
      chunking_strategy: "auto",
    })
    isHeard(answer.text)
  })
})

describe("refusals arrive as the client's own errors", () => {
  const failure = async (changes: object, apiKey = node.keys.dev): Promise<unknown> => {
    const client = new OpenAI({ apiKey, baseURL: `${node.base}/v1`, maxRetries: 0 })
    const error: unknown = await client.audio.transcriptions
      .create({ model, file: await file(), ...changes })
      .then(() => "no error")
      .catch((cause: unknown) => cause)
    return error
  }

  it.each([
    ["an unknown model", { model: "whisper-9" }, OpenAI.NotFoundError],
    ["a bad temperature", { temperature: 2 }, OpenAI.BadRequestError],
    ["a bad language", { language: "xx" }, OpenAI.BadRequestError],
    ["no audio", { file: new File(["hello"], "speech.mp3") }, OpenAI.BadRequestError],
  ] as const)("%s", async (_, changes, type) => {
    expect(await failure(changes)).toBeInstanceOf(type)
  })

  it("no such key, and no money", async () => {
    expect(await failure({}, `svc_${"A".repeat(32)}`)).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(await failure({}, node.keys.broke)).toMatchObject({ status: 402 })
  })
})
