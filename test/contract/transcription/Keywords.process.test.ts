// `keywords[]` at every door: the fake model's text depends on the phrases that it is given, so a door that loses one gives another text.
// What a model does with them is tested with the engines.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { lastWord, listener, liveAddress, noise, speak, wavOf } from "../../support/clients/LiveClient.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { poll, post, targetOf, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), listener({ translates: true }, { id: "translator" })] })
  await untilLoaded(node, "listener", "translator")
})
afterAll(() => node.stop())

const phrases = ["Zorvan Bélindra", "東京"]
const pcm = noise(5)
const audio = wavOf(pcm)

type Fields = ReadonlyArray<readonly [string, string]>
const named = (name: string): Fields => phrases.map((phrase) => [name, phrase] as const)

const ask = (query: Readonly<Record<string, string>>, fields: Fields = [], more = "") =>
  post(node, audio, { query: { ...query, ...Object.fromEntries(new URLSearchParams(more)) }, fields })

const textOf = async (response: Promise<Response>): Promise<string> => {
  const body = (await (await response).json()) as { text: string }
  expect(body.text).not.toBe("")
  return body.text
}

const sync = { model: "listener", sync: "true" }

describe("the phrases reach the model", () => {
  it("in a form, under each of the names, and in the query", async () => {
    const [plain, expected] = await Promise.all([textOf(ask(sync)), textOf(ask(sync, named("keywords[]")))])
    expect(expected).not.toBe(plain)
    expect(await textOf(ask(sync, named("keywords")))).toBe(expected)
    expect(await textOf(ask(sync, named("keyterm")))).toBe(expected)
    expect(await textOf(ask(sync, [["keywords[]", ""]]))).toBe(plain)
    const query = new URLSearchParams([
      ...Object.entries(sync),
      ...named("keyterm").map(([name, value]): [string, string] => [name, value]),
    ])
    const form = new FormData()
    form.append("file", new File([audio], "speech.wav"))
    const response = await fetch(`${node.base}/v1/audio/transcriptions?${query}`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.dev}` },
      body: form,
    })
    expect(((await response.json()) as { text: string }).text).toBe(expected)
  })

  it("as a stream, as a job and as a translation", async () => {
    const expected = await textOf(ask(sync, named("keywords[]")))
    const events = parseEventStream(
      await (await ask({ model: "listener", stream: "true" }, named("keywords[]"))).text(),
    )
    expect(JSON.parse(events.at(-2)!)).toMatchObject({ type: "transcript.text.done", text: expected })
    const { job_id } = (await (await ask({ model: "listener" }, named("keywords[]"))).json()) as {
      job_id: string
    }
    expect((await untilDone(targetOf(node), job_id)).body.text).toBe(expected)
    expect((await poll(targetOf(node), job_id)).body).not.toHaveProperty("keywords")
    const form = new FormData()
    for (const [name, value] of [["model", "translator"], ...named("keywords[]")] as const)
      form.append(name, value)
    form.append("file", new File([audio], "speech.wav"))
    const translation = await fetch(`${node.base}/v1/audio/translations`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.dev}` },
      body: form,
    })
    expect(((await translation.json()) as { text: string }).text).toBe(expected.toUpperCase())
  })

  it("in a live session", async () => {
    const expected = await textOf(ask(sync, named("keywords[]")))
    const query = new URLSearchParams(
      named("keyterm").map(([name, value]): [string, string] => [name, value]),
    )
    const client = await SocketClient.open(`${liveAddress(node, { model: "listener" })}&${query}`)
    speak(client, pcm, 6_400)
    client.send({ type: "stop" })
    expect(await lastWord(client)).toMatchObject({ text: expected })
  })

  it("in a realtime session, whose description has them, in both spellings", async () => {
    const heard = Buffer.from(s16ToBytes(new Resampler(24_000, 16_000).push(bytesToS16(pcm))))
    const expected = await textOf(post(node, wavOf(heard), { query: sync, fields: named("keywords[]") }))
    const updates = [
      {
        type: "session.update",
        session: {
          type: "transcription",
          audio: { input: { transcription: { model: "listener", keywords: phrases }, turn_detection: null } },
        },
      },
      {
        type: "transcription_session.update",
        session: {
          input_audio_transcription: { model: "listener", keywords: phrases },
          turn_detection: null,
        },
      },
    ]
    for (const update of updates) {
      const client = await SocketClient.open(
        `${node.socketBase}/v1/realtime?intent=transcription&token=${node.keys.dev}`,
      )
      client.send(update)
      client.send({ type: "input_audio_buffer.append", audio: pcm.toString("base64") })
      client.send({ type: "input_audio_buffer.commit" })
      const completed = "conversation.item.input_audio_transcription.completed"
      await client.until((events) => events.some(({ type }) => type === completed))
      expect(JSON.stringify(client.frames[1])).toContain(JSON.stringify({ keywords: phrases }).slice(1, -1))
      expect(client.frames.find(({ type }) => type === completed)).toMatchObject({ transcript: expected })
      client.socket.close()
    }
  })
})

describe("refusals name the field and the limit", () => {
  const many = Array.from({ length: 1_001 }, (_, i) => `name ${i}`)
  const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>, string]> = [
    ["too many", many, "keywords: must be at most 1000 phrases"],
    ["far too many", Array(1_100).fill("a"), "body: has more than 32 parts besides 1000 keywords"],
    ["too long", ["a", "b".repeat(65)], "keywords[1]: must have 1 to 64 characters"],
    ["blank", ["a", "  "], "keywords[1]: must have 1 to 64 characters"],
    ["with a control character", ["a", "b\u0007"], "keywords[1]: must be text without control characters"],
    ["with a line end", ["a\nb"], "keywords[0]: must be text without control characters"],
  ]
  it.each(rows)("%s", async (_, given, problem) => {
    const response = await ask(
      sync,
      given.map((phrase) => ["keywords[]", phrase] as const),
    )
    expect([response.status, await response.json()]).toEqual([400, { detail: problem }])
  })

  it("1,000 phrases are accepted, beside other fields", async () => {
    const fields = many.slice(1).map((phrase) => ["keywords[]", phrase] as const)
    const response = await ask(sync, [...fields, ["prompt", "names"]])
    expect(response.status).toBe(200)
  })

  it("more than 32 other parts are not", async () => {
    const fields = Array.from({ length: 33 }, (_, i) => [`f${i}`, "x"] as const)
    const response = await ask(sync, fields)
    expect(await response.json()).toEqual({ detail: "body: has more than 32 parts besides 1000 keywords" })
  })

  it("before a live session begins", async () => {
    const refused = await SocketClient.connect(
      `${liveAddress(node, { model: "listener" })}&keyterm=${"a".repeat(65)}`,
    )
    expect((refused as Refused).status).toBe(400)
  })

  it("in a realtime session, which goes on", async () => {
    const client = await SocketClient.open(
      `${node.socketBase}/v1/realtime?intent=transcription&token=${node.keys.dev}`,
    )
    const update = (keywords: ReadonlyArray<string>) =>
      client.send({
        type: "session.update",
        session: { type: "transcription", audio: { input: { transcription: { keywords } } } },
      })
    update(many)
    update(Array(5_000).fill("a"))
    update(["\u0000"])
    update(phrases)
    await client.until((events) => events.some(({ type }) => type === "session.updated"))
    const field = "session.audio.input.transcription.keywords"
    expect(client.frames.slice(1, 4).map(({ error }) => (error as { param: string }).param)).toEqual([
      field,
      field,
      `${field}[0]`,
    ])
    client.socket.close()
  })
})
