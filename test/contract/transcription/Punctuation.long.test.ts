// `punctuation` over a whole node, in every mode and format: removed exactly, added by rule where the model wrote none,
// refused where no rule is known, and the same text from a file, a stream, a job and a live session.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import {
  lastWord,
  listener,
  liveAddress,
  noise,
  openLive,
  speak,
  wavOf,
} from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { post, submit, targetOf, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const languages = ["en", "zh", "ru"]
let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [
      listener(
        { languages, words: ["what,", "is", "(red)", "fox.", "3.5", "don't", "—", "?!"] },
        { id: "marked" },
      ),
      listener({ languages, words: ["what", "is", "red", "fox", "3.5", "don't"] }, { id: "bare" }),
      listener({ languages, words: ["你好", "，", "世界", "。"] }, { id: "chinese" }),
      // Detects the language: the first of its languages when none is given.
      listener({ languages: ["ru", "en"] }, { id: "russian" }),
    ],
  })
})
afterAll(() => node.stop())

const pcm = noise(5)
type Query = Readonly<Record<string, string>>
const ask = (query: Query) => post(node, wavOf(pcm), { query })
const sync = async (query: Query) =>
  (await ask({ sync: "true", ...query })).json() as Promise<{ text: string }>
const format = async (model: string, response_format: string, more: Query) =>
  (await ask({ model, sync: "true", response_format, ...more })).text()
interface Verbose {
  readonly text: string
  readonly segments: ReadonlyArray<{ readonly text: string }>
  readonly words: ReadonlyArray<{ readonly word: string }>
}

/** The text of every mode. */
const everyMode = async (query: Query) => {
  const { text } = await sync(query)
  const events = parseEventStream(await (await ask({ stream: "true", ...query })).text())
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data) as { type: string; delta?: string; text?: string })
  const job = await submit(targetOf(node), wavOf(pcm), query)
  const client = await openLive(node, query)
  speak(client, pcm, 6_400)
  client.send({ type: "stop" })
  return {
    sync: text,
    deltas: events.map(({ delta = "" }) => delta).join(""),
    done: events.at(-1)!.text,
    job: (await untilDone(targetOf(node), job)).body.text,
    live: (await lastWord(client)).text,
  }
}

const same = (text: string) => ({ sync: text, deltas: text, done: text, job: text, live: text })

describe("punctuation=false", () => {
  it("removes marks and nothing else, in every mode", async () => {
    const { text } = await sync({ model: "marked", language: "en" })
    expect(text).toMatch(/what, .*\(red\)/)
    const modes = await everyMode({ model: "marked", language: "en", punctuation: "false" })
    const expected = text
      .split(" ")
      .map((word) => word.replaceAll(/^[(—?!]+|[,.)—?!]+$/g, ""))
      .filter((word) => word !== "")
      .join(" ")
    expect(modes).toEqual(same(expected))
    expect(expected).toMatch(/3\.5/)
    expect(expected).toMatch(/don't/)
  })

  it("removes Chinese marks", async () => {
    const { text } = await sync({ model: "chinese", language: "zh" })
    expect(text).toMatch(/，/)
    const expected = text.replaceAll(/[，。]+$|^[，。]+/g, "").replaceAll(/[，。]+/g, " ")
    expect(await everyMode({ model: "chinese", language: "zh", punctuation: "false" })).toEqual(
      same(expected),
    )
  })

  it("in every format", async () => {
    const more = { language: "en", punctuation: "false", "timestamp_granularities[]": "word" }
    const { text } = await sync({ model: "marked", ...more })
    expect(await format("marked", "text", more)).toBe(`${text}\n`)
    const verbose = JSON.parse(await format("marked", "verbose_json", more)) as Verbose
    expect(verbose.text).toBe(text)
    expect(
      verbose.segments
        .map((segment) => segment.text)
        .join("")
        .trim(),
    ).toBe(text)
    expect(verbose.words.map(({ word }) => word).join(" ")).toBe(text)
    const cues = (body: string) => body.split("\n").filter((line) => /\p{L}/u.test(line) && line !== "WEBVTT")
    expect(cues(await format("marked", "srt", more)).join(" ")).toBe(text)
    expect(cues(await format("marked", "vtt", more)).join(" ")).toBe(text)
  })
})

describe("punctuation=true", () => {
  it("leaves a model's own punctuation alone", async () => {
    const { text } = await sync({ model: "marked", language: "en" })
    expect(await everyMode({ model: "marked", language: "en", punctuation: "true" })).toEqual(same(text))
  })

  it("adds capitals and ends of sentences where the model writes none", async () => {
    const { text } = await sync({ model: "bare", language: "en" })
    const modes = await everyMode({ model: "bare", language: "en", punctuation: "true" })
    expect(modes).toEqual(same(modes.sync))
    expect(modes.sync).toMatch(/^[A-Z3].*[.?]$/)
    expect(modes.sync.toLowerCase().replaceAll(/[.?](?= |$)/g, "")).toBe(text)
    const verbose = JSON.parse(
      await format("bare", "verbose_json", {
        language: "en",
        punctuation: "true",
        "timestamp_granularities[]": "word",
      }),
    ) as Verbose
    expect(verbose.text).toBe(modes.sync)
    for (const segment of verbose.segments) expect(segment.text).toMatch(/^ [A-Z3].*[.?]$/)
    expect(verbose.words.map(({ word }) => word).join(" ")).toBe(modes.sync)
  })

  it("is refused in a language whose rules are not known, in every mode", async () => {
    const problem = /^punctuation: cannot be added in ru; it can in ar, de, .*, zh$/
    for (const mode of [{ sync: "true" }, { stream: "true" }, {}]) {
      // Language given, fixed by the model, or detected from the audio.
      for (const query of [{ model: "bare", language: "ru" }, { model: "russian" }]) {
        if (!("sync" in mode) && !("stream" in mode) && !("language" in query)) continue
        const response = await ask({ ...mode, ...query, punctuation: "true" } as Query)
        const body = (await response.json()) as { detail: string }
        expect([response.status, body.detail]).toEqual([400, expect.stringMatching(problem)])
      }
    }
    const job = await submit(targetOf(node), wavOf(pcm), { model: "russian", punctuation: "true" })
    expect(await untilDone(targetOf(node), job)).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(problem) },
    })
    const address = liveAddress(node, { model: "bare", language: "ru", punctuation: "true" })
    expect(await SocketClient.connect(address)).toMatchObject({ status: 400 })
    const client = await openLive(node, { model: "russian", punctuation: "true" })
    speak(client, pcm, 6_400)
    client.send({ type: "stop" })
    expect(await lastWord(client)).toMatchObject({ type: "error", error: expect.stringMatching(problem) })
    // Removing needs no rules.
    expect((await ask({ sync: "true", model: "russian", punctuation: "false" })).status).toBe(200)
  })
})

describe("the realtime protocol", () => {
  const heard = Buffer.from(s16ToBytes(new Resampler(24_000, 16_000).push(bytesToS16(pcm))))
  const realtime = (query: string) =>
    `ws://127.0.0.1:${node.port}/v1/realtime?token=${node.keys.dev}&intent=transcription&${query}`

  it.each(["true", "false"])("takes punctuation=%s from the address", async (punctuation) => {
    const client = await SocketClient.open(realtime(`model=marked&punctuation=${punctuation}`))
    await client.until((events) => events.length >= 1)
    client.send({
      type: "session.update",
      session: {
        type: "transcription",
        audio: { input: { turn_detection: null, transcription: { language: "en" } } },
      },
    })
    for (let at = 0; at < pcm.length; at += 48_000) {
      client.send({
        type: "input_audio_buffer.append",
        audio: pcm.subarray(at, at + 48_000).toString("base64"),
      })
    }
    client.send({ type: "input_audio_buffer.commit" })
    const of = (type: string) => client.frames.filter((event) => event.type === type)
    const about = "conversation.item.input_audio_transcription"
    await client.until(() => of(`${about}.completed`).length === 1)
    const response = await post(node, wavOf(heard), {
      query: { model: "marked", language: "en", punctuation, sync: "true" },
    })
    const { text } = (await response.json()) as { text: string }
    expect(of(`${about}.completed`)[0]).toMatchObject({ transcript: text })
    expect(
      of(`${about}.delta`)
        .map(({ delta }) => delta)
        .join(""),
    ).toBe(text)
    client.vanish()
  })

  it("refuses what is no flag, and a language whose rules are not known", async () => {
    const refusal = (query: string) => SocketClient.connect(realtime(query))
    expect(await refusal("model=marked&punctuation=some")).toMatchObject({
      status: 400,
      body: '{"detail":"punctuation: must be true or false"}',
    })
    const client = await SocketClient.open(realtime("model=marked&punctuation=true"))
    client.send({
      type: "session.update",
      session: { type: "transcription", audio: { input: { transcription: { language: "ru" } } } },
    })
    await client.until((events) => events.some(({ type }) => type === "error"))
    const error = client.frames.find(({ type }) => type === "error")
    expect(error).toMatchObject({
      error: { message: expect.stringMatching(/punctuation.*cannot be added in ru/) },
    })
    client.vanish()
  })
})
