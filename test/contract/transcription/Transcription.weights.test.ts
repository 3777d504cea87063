// POST /v1/audio/transcriptions over a real listener and the built-in weights: its three modes, its five formats, and
// where parameters may stand and which of them takes precedence.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parseSrt, parseVtt } from "../../support/audio/Captions.ts"
import { type Clip, cardWordErrorRate, clipBytes, clips, longWav } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { TextStream } from "../../support/clients/TextStream.ts"
import {
  type Asked,
  model,
  path,
  post,
  submit,
  targetOf,
  untilDone,
  untilNoUploads,
  whisper,
} from "../../support/clients/TranscriptionClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [whisper] })
  said = ((await (await sync()).json()) as { text: string }).text
})
afterAll(() => node.stop())

const clip = clips.find(({ file }) => file.startsWith("04")) as Clip
/** The recogniser's text of the clip: the same in every mode and format. */
let said = ""
// Two sentences, all of whose words the built-in weights recognise.
const two = clips.find(({ file }) => file.startsWith("11")) as Clip
const ask = (asked: Asked, file: Clip = clip) => post(node, clipBytes(file) as Uint8Array<ArrayBuffer>, asked)
const sync = (query: Record<string, string> = {}, file: Clip = clip) =>
  ask({ query: { model, sync: "true", ...query } }, file)

interface Verbose {
  readonly task: string
  readonly language: string
  readonly duration: number
  readonly text: string
  readonly segments: ReadonlyArray<{
    readonly id: number
    readonly start: number
    readonly end: number
    readonly text: string
  }>
  readonly words?: ReadonlyArray<{ readonly word: string; readonly start: number; readonly end: number }>
}

describe("formats", () => {
  it("carry the words of the evaluation clips, within the model card's error rate", inLong, async () => {
    const pairs = await Promise.all(
      clips.map(async (each) => {
        const { text } = (await (await sync({}, each)).json()) as { text: string }
        return { reference: each.text, heard: text }
      }),
    )
    expect(wordErrorRate(pairs)).toBeLessThanOrEqual(cardWordErrorRate + 0.001)
  })

  it("json is the text and nothing else", async () => {
    const response = await sync()
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toMatch(/^application\/json/)
    expect(await response.json()).toEqual({ text: said })
  })

  it("text is the text and a line end", async () => {
    const response = await sync({ response_format: "text" })
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8")
    expect(await response.text()).toBe(`${said}\n`)
  })

  it("verbose_json has language, duration and ordered segments inside it", async () => {
    const response = await sync({ response_format: "verbose_json" }, two)
    const body = (await response.json()) as Verbose
    expect(body).toMatchObject({ task: "transcribe", language: "en" })
    expect(body.duration).toBeCloseTo(two.seconds, 1)
    expect(body.segments.length).toBeGreaterThanOrEqual(2)
    let last = 0
    for (const [i, segment] of body.segments.entries()) {
      expect(segment.id).toBe(i)
      expect(segment.start).toBeGreaterThanOrEqual(last)
      expect(segment.end).toBeGreaterThanOrEqual(segment.start)
      expect(segment.end).toBeLessThanOrEqual(body.duration)
      last = segment.end
    }
    expect(
      body.segments
        .map(({ text }) => text)
        .join("")
        .trim(),
    ).toBe(body.text)
    expect(body).not.toHaveProperty("words")
  })

  it("words are given where they are asked for, in order and inside the duration", async () => {
    const fields = [["timestamp_granularities[]", "word"]] as const
    const response = await ask({ query: { model, sync: "1", response_format: "verbose_json" }, fields }, two)
    const { duration, segments, text, words = [] } = (await response.json()) as Verbose
    expect(words.map(({ word }) => word).join(" ")).toBe(text)
    let last = 0
    for (const { end, start } of words) {
      expect(start).toBeGreaterThanOrEqual(last)
      expect(end).toBeGreaterThan(start)
      last = end
    }
    expect(last).toBeLessThanOrEqual(duration)
    expect(segments.length).toBeGreaterThan(0)
  })

  it.each([
    ["srt", "text/plain; charset=utf-8", parseSrt],
    ["vtt", "text/vtt; charset=utf-8", parseVtt],
  ] as const)("%s parses under a strict grammar", async (format, contentType, parse) => {
    const response = await sync({ response_format: format }, two)
    expect(response.headers.get("content-type")).toBe(contentType)
    const cues = parse(await response.text())
    expect(cues.length).toBeGreaterThanOrEqual(2)
    expect(cues.at(-1)!.endMs).toBeLessThanOrEqual(two.seconds * 1000 + 10)
    expect(
      wordErrorRate([{ reference: two.text, heard: cues.map(({ text }) => text).join(" ") }]),
    ).toBeLessThan(0.3)
  })

  it("silence is no text in every format", async () => {
    const silence = longWav(2).fill(0, 44) as Uint8Array<ArrayBuffer>
    const bodies: Record<string, string> = {}
    for (const format of ["json", "text", "srt", "vtt", "verbose_json"]) {
      const response = await post(node, silence, { query: { model, sync: "true", response_format: format } })
      expect(response.status).toBe(200)
      bodies[format] = await response.text()
    }
    expect(bodies).toMatchObject({ json: '{"text":""}', text: "\n", srt: "", vtt: "WEBVTT\n\n" })
    expect(JSON.parse(bodies.verbose_json!)).toMatchObject({ text: "", duration: 2, segments: [] })
  })
})

describe("a job", () => {
  it("is accepted, polled and answered, in the documented bodies", async () => {
    const response = await ask({ query: { model } })
    expect(response.status).toBe(202)
    const accepted = (await response.json()) as Record<string, string>
    expect(accepted).toEqual({
      job_id: expect.stringMatching(/^job_transcription_[0-9a-f]{24}$/),
      status: "accepted",
      poll_url: `${path}?job_id=${accepted.job_id}`,
    })
    const statuses = new Set<unknown>()
    for (;;) {
      const polled = await node.fetch(accepted.poll_url!, {
        headers: { authorization: `Bearer ${node.keys.dev}` },
      })
      const body = (await polled.json()) as Record<string, unknown>
      if (polled.status === 200) {
        expect(body).toEqual({ text: said, job_id: accepted.job_id, status: "completed" })
        break
      }
      expect(polled.status).toBe(202)
      expect(body).toEqual({
        job_id: accepted.job_id,
        status: expect.stringMatching(/^(accepted|processing)$/),
        poll_interval_ms: 500,
      })
      statuses.add(body.status)
    }
    await untilNoUploads(node.dataDir)
  })

  it.each(["text", "srt", "vtt"])("in the format %s carries the whole body as its text", async (format) => {
    const id = await submit(targetOf(node), clipBytes(two) as Uint8Array<ArrayBuffer>, {
      response_format: format,
    })
    const [polled, direct] = [
      await untilDone(targetOf(node), id),
      await sync({ response_format: format }, two),
    ]
    expect(polled).toEqual({
      status: 200,
      body: { text: await direct.text(), job_id: id, status: "completed" },
    })
  })

  it("in verbose_json is the synchronous answer with its id and status", async () => {
    const query = { response_format: "verbose_json", "timestamp_granularities[]": "word" }
    const id = await submit(targetOf(node), clipBytes(two) as Uint8Array<ArrayBuffer>, query)
    const [polled, direct] = [await untilDone(targetOf(node), id), await sync(query, two)]
    expect(polled.body).toEqual({ ...((await direct.json()) as object), job_id: id, status: "completed" })
  })

  it("of a file that is no audio fails, and the poll has the reason", async () => {
    const id = await submit(targetOf(node), Buffer.from("no audio at all") as Uint8Array<ArrayBuffer>)
    expect(await untilDone(targetOf(node), id)).toEqual({
      status: 400,
      body: { job_id: id, status: "failed", detail: expect.stringMatching(/^file: /) },
    })
    await untilNoUploads(node.dataDir)
  })
})

describe("a stream", () => {
  interface Event {
    readonly type: string
    readonly delta?: string
    readonly text?: string
    readonly duration?: number
    readonly language?: string
  }

  it("is deltas that add up, done once, and [DONE]", async () => {
    const response = await ask({ query: { model, stream: "true" } }, two)
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8")
    const events = parseEventStream(await response.text())
    expect(events.at(-1)).toBe("[DONE]")
    const objects = events.slice(0, -1).map((data) => JSON.parse(data) as Event)
    expect(objects.slice(0, -1).every(({ type }) => type === "transcript.text.delta")).toBe(true)
    const done = objects.at(-1)!
    expect(done).toEqual({
      type: "transcript.text.done",
      text: ((await (await sync({}, two)).json()) as Event).text,
      duration: expect.closeTo(two.seconds, 1),
      language: "en",
    })
    expect(objects.map(({ delta = "" }) => delta).join("")).toBe(done.text)
  })

  it("of a minute has many deltas", inLong, async () => {
    const stream = new TextStream(
      await post(node, longWav(60) as Uint8Array<ArrayBuffer>, { query: { model, stream: "true" } }),
    )
    await stream.toEnd()
    expect(stream.events.at(-1)).toBe("[DONE]")
    expect(stream.events.length).toBeGreaterThan(10)
  })

  it("has its first delta while the file is still being transcribed; its reader leaves: that stops the work, and removes the file", async () => {
    const stream = new TextStream(
      await post(node, longWav(300) as Uint8Array<ArrayBuffer>, { query: { model, stream: "true" } }),
    )
    await stream.take(1)
    expect(JSON.parse(stream.events[0]!)).toMatchObject({ type: "transcript.text.delta" })
    // The engine still works on it, for seconds: the request has not ended.
    expect((await node.metrics()).get("edgewise_requests_in_flight")).toBeGreaterThan(0)
    await stream.leave()
    await untilIdle(node)
    await untilNoUploads(node.dataDir)
  })

  it("refuses with an ordinary error what is refused before the first window", async () => {
    const notAudio = await post(node, Buffer.from("no audio") as Uint8Array<ArrayBuffer>, {
      query: { model, stream: "true" },
    })
    expect([notAudio.status, await notAudio.json()]).toEqual([
      400,
      { detail: expect.stringMatching(/^file: /) },
    ])
    const language = await ask({ query: { model, stream: "true", language: "xx" } })
    expect([language.status, await language.json()]).toEqual([
      400,
      { detail: expect.stringMatching(/^language: /) },
    ])
  })
})

describe("where parameters stand", () => {
  it("a model in the form without flags is answered at once", async () => {
    const response = await ask({ fields: [["model", model]] })
    expect([response.status, await response.json()]).toEqual([200, { text: said }])
  })

  it("a model in query and form is a job of the query's model", async () => {
    const response = await ask({ query: { model }, fields: [["model", "unknown"]] })
    expect(response.status).toBe(202)
    const { job_id } = (await response.json()) as { job_id: string }
    expect((await untilDone(targetOf(node), job_id)).status).toBe(200)
  })

  it("an empty model in the query is none", async () => {
    const response = await ask({ query: { model: "" }, fields: [["model", model]] })
    expect([response.status, await response.json()]).toEqual([200, { text: said }])
  })

  it("the query wins, the form stands in, and the order of parts does not matter", async () => {
    const form = new FormData()
    form.append("file", new File([clipBytes(clip) as Uint8Array<ArrayBuffer>], "a.wav"))
    for (const [name, value] of [
      ["response_format", "srt"],
      ["temperature", "7"],
      ["language", "english"],
      ["model", model],
    ]) {
      form.append(name!, value!)
    }
    const query = "response_format=text&temperature=0&language=en"
    const response = await node.fetch(`${path}?${query}`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.dev}` },
      body: form,
    })
    expect([response.status, await response.text()]).toEqual([200, `${said}\n`])
    form.set("temperature", "0.0")
    form.set("language", "en")
    const fallback = await node.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.dev}` },
      body: form,
    })
    expect(
      parseSrt(await fallback.text())
        .map(({ text }) => text)
        .join(" "),
    ).toBe(said)
  })

  it.each([
    [{ model, stream: "true", sync: "true" }, []],
    [{ model, stream: "true" }, [["sync", "true"]]],
    [
      {},
      [
        ["model", model],
        ["stream", "1"],
        ["sync", "True"],
      ],
    ],
  ] as ReadonlyArray<readonly [Record<string, string>, ReadonlyArray<readonly [string, string]>]>)(
    "stream and sync exclude each other: %j %j",
    async (query, fields) => {
      const response = await ask({ query, fields })
      expect([response.status, await response.json()]).toEqual([
        400,
        { detail: "stream: stream and sync exclude each other" },
      ])
    },
  )

  it("false flags are no flags", async () => {
    const response = await ask({ query: { model, stream: "false", sync: "0" } })
    expect(response.status).toBe(202)
    const { job_id } = (await response.json()) as { job_id: string }
    await untilDone(targetOf(node), job_id)
  })

  it("punctuation can be taken away", async () => {
    const without = (await (await sync({ punctuation: "false" })).json()) as { text: string }
    expect(without.text).toBe(said.replaceAll(/[.,?]/g, ""))
  })
})
