// GET /v1/realtime?intent=transcription: OpenAI's realtime protocol, its event names checked against the types of
// OpenAI's client: items by hand and by silence, updates in both spellings, errors that leave the socket open, and
// receipts.
import { Effect } from "effect"
import type { RealtimeClientEvent, RealtimeServerEvent } from "openai/resources/realtime/realtime"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Drain } from "#actors/Drain.ts"
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { voice } from "../../support/audio/Voice.ts"
import { listener, noise, openWhereRoom, syncAnswer } from "../../support/clients/LiveClient.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { metered } from "../../support/clients/TranscriptionClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

/** A window takes more than half of the engine's time: the engine can serve one session only. */
const slow = listener({ callMs: 600 }, { id: "slow" })
let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), listener({}, { id: "other" }), slow, fakeModel] })
  await untilLoaded(node, "listener", "other", "slow")
})
afterAll(() => node.stop())

const address = (query = "intent=transcription", token = node.keys.dev) =>
  `${node.socketBase}/v1/realtime?token=${token}&${query}`
const open = async (query?: string, token?: string, headers: Readonly<Record<string, string>> = {}) => {
  const client = await openWhereRoom(address(query, token), headers)
  await client.until((events) => events.length >= 1)
  return client
}
const send = (client: SocketClient, event: RealtimeClientEvent) => client.send(event)
type ServerType = RealtimeServerEvent["type"]
const of = <T extends ServerType>(client: SocketClient, type: T) =>
  client.frames.filter((event) => event.type === type) as unknown as ReadonlyArray<
    Extract<RealtimeServerEvent, { readonly type: T }>
  >
const completed = "conversation.item.input_audio_transcription.completed"
const delta = "conversation.item.input_audio_transcription.delta"

/** 24 kHz audio, and its transcript by the recogniser. */
const spoken = (seconds: number, seed: number) => {
  const pcm = noise(seconds * 1.5, seed)
  return { pcm, heard: Buffer.from(s16ToBytes(new Resampler(24_000, 16_000).push(bytesToS16(pcm)))) }
}
const append = (client: SocketClient, pcm: Buffer, bytes = 4_800) => {
  for (let at = 0; at < pcm.length; at += bytes) {
    send(client, {
      type: "input_audio_buffer.append",
      audio: pcm.subarray(at, at + bytes).toString("base64"),
    })
  }
}
const byHand: RealtimeClientEvent = {
  type: "session.update",
  session: {
    type: "transcription",
    audio: {
      input: {
        format: { type: "audio/pcm", rate: 24_000 },
        transcription: { model: "listener", language: "fr", prompt: "names" },
        turn_detection: null,
      },
    },
  },
}

describe("a session", () => {
  it("begins with itself", async () => {
    const client = await open()
    expect(client.frames).toEqual([
      {
        type: "session.created",
        event_id: expect.stringMatching(/^event_/),
        session: {
          id: expect.stringMatching(/^sess_/),
          object: "realtime.transcription_session",
          type: "transcription",
          audio: {
            input: {
              format: { type: "audio/pcm", rate: 24_000 },
              transcription: { model: "listener" },
              turn_detection: {
                type: "server_vad",
                threshold: 0.5,
                silence_duration_ms: 500,
                prefix_padding_ms: 300,
              },
            },
          },
        },
      },
    ])
    client.socket.close()
  })

  it("has the log probabilities of its transcripts where they are asked for, in both spellings", async () => {
    const { heard, pcm } = spoken(6, 4)
    const form = { model: "listener", response_format: "json" }
    const answer = (await syncAnswer(node, heard, { ...form, "include[]": "logprobs" })) as unknown as {
      text: string
      logprobs: ReadonlyArray<object>
    }
    expect(answer.logprobs.length).toBeGreaterThan(10)
    const include = ["item.input_audio_transcription.logprobs"] as const
    const transcription = { model: "listener" }
    for (const update of [
      {
        type: "session.update",
        session: {
          type: "transcription",
          include,
          audio: { input: { transcription, turn_detection: null } },
        },
      },
      {
        type: "transcription_session.update",
        session: { include, input_audio_transcription: transcription, turn_detection: null },
      },
    ]) {
      const client = await open()
      client.send(update)
      append(client, pcm)
      send(client, { type: "input_audio_buffer.commit" })
      await client.until((events) => events.some(({ type }) => type === completed))
      expect(client.frames[1]).toMatchObject({ session: { include } })
      expect(of(client, completed)[0]).toMatchObject({ transcript: answer.text, logprobs: answer.logprobs })
      expect(of(client, delta).flatMap(({ logprobs }) => logprobs)).toEqual(answer.logprobs)
      for (const { delta: text, logprobs } of of(client, delta))
        expect(
          logprobs!
            .map(({ token }) => token)
            .join("")
            .trim(),
        ).toBe(text!.trim())
      client.socket.close()
    }
    const client = await open()
    client.send({ type: "session.update", session: { include: ["item.other"] } })
    send(client, byHand)
    append(client, pcm)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until((events) => events.some(({ type }) => type === completed))
    expect(client.frames[1]).toMatchObject({ type: "error", error: { param: "session.include[0]" } })
    expect(of(client, completed)[0]).not.toHaveProperty("logprobs")
    expect(of(client, delta)[0]).not.toHaveProperty("logprobs")
    client.socket.close()
  })

  it("transcribes what is committed: stable deltas, then the transcript that a file gets", async () => {
    const client = await open()
    send(client, byHand)
    const { heard, pcm } = spoken(5, 3)
    append(client, pcm)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until((events) => events.some(({ type }) => type === completed))
    const [done] = of(client, completed)
    const { text } = await syncAnswer(node, heard, { model: "listener", language: "fr", prompt: "names" })
    expect(done).toMatchObject({ transcript: text, content_index: 0 })
    expect(done!.usage).toEqual({ type: "duration", seconds: heard.length / 32_000 })
    expect(
      of(client, delta)
        .map((event) => event.delta)
        .join(""),
    ).toBe(text)
    const [committed] = of(client, "input_audio_buffer.committed")
    expect(committed).toMatchObject({ item_id: done!.item_id, previous_item_id: null })
    expect(of(client, "conversation.item.added").map(({ item }) => item)).toMatchObject([
      { id: done!.item_id, role: "user", type: "message" },
    ])
    // The next item follows it.
    append(client, spoken(1, 4).pcm)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until(() => of(client, completed).length === 2)
    expect(of(client, "input_audio_buffer.committed")[1]).toMatchObject({ previous_item_id: done!.item_id })
    client.socket.close()
  })

  it("changes its language also where the engine could not serve a second one", async () => {
    const client = await open("intent=transcription&model=slow")
    const update = (language: string): RealtimeClientEvent => ({
      type: "session.update",
      session: {
        type: "transcription",
        audio: { input: { transcription: { language }, turn_detection: null } },
      },
    })
    send(client, update("fr"))
    append(client, spoken(2, 5).pcm)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until(() => of(client, completed).length === 1)
    // In the middle of an item, which goes on as it began; its audio is why this session is charged.
    append(client, spoken(1, 6).pcm)
    send(client, update("en"))
    await client.until((events) => events.filter(({ type }) => type === "session.updated").length === 2)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until(() => of(client, completed).length === 2)
    expect(of(client, "error")).toEqual([])
    client.socket.close()
  })

  it("detects turns: two utterances are two items", async () => {
    const client = await open()
    const quiet = Buffer.alloc(2 * 24_000 * 2)
    const loud = (seed: number) => voice(1, seed)
    append(client, Buffer.concat([quiet, loud(1), quiet, loud(2), quiet]))
    await client.until(() => of(client, completed).length === 2)
    const started = of(client, "input_audio_buffer.speech_started")
    const stopped = of(client, "input_audio_buffer.speech_stopped")
    // With 300 ms before the speech, and with the silence of 500 ms behind it. The ends of words are faint.
    expect(started.map(({ audio_start_ms }) => Math.round(audio_start_ms / 100))).toEqual([17, 47])
    const lateness = stopped.map(({ audio_end_ms }, at) => Math.abs(audio_end_ms - [3_500, 6_500][at]!))
    expect(Math.max(...lateness)).toBeLessThan(250)
    const ids = of(client, completed).map(({ item_id }) => item_id)
    expect(new Set(ids).size).toBe(2)
    expect(started.map(({ item_id }) => item_id)).toEqual(stopped.map(({ item_id }) => item_id))
    expect(new Set(started.map(({ item_id }) => item_id))).toEqual(new Set(ids))
    for (const { transcript, usage } of of(client, completed)) {
      expect(transcript.split(" ").length).toBeGreaterThan(5)
      // A second of speech, 300 ms before it and 500 ms behind.
      expect(usage).toMatchObject({ type: "duration", seconds: expect.closeTo(1.8, 0) })
    }
    client.socket.close()
  })

  it("answers in the older spelling to a client that uses it, and takes another model and a cleared buffer", async () => {
    const client = await open("intent=transcription", node.keys.dev, { "openai-beta": "realtime=v1" })
    expect(client.frames[0]).toMatchObject({
      type: "transcription_session.created",
      session: { input_audio_format: "pcm16", input_audio_transcription: { model: "listener" } },
    })
    client.send({
      type: "transcription_session.update",
      session: {
        input_audio_format: "pcm16",
        input_audio_transcription: { model: "other", language: "en" },
        turn_detection: { type: "server_vad", silence_duration_ms: 200 },
      },
    })
    await client.until((events) => events.length >= 2)
    expect(client.frames[1]).toMatchObject({
      type: "transcription_session.updated",
      session: {
        input_audio_transcription: { model: "other", language: "en" },
        turn_detection: { type: "server_vad", silence_duration_ms: 200, prefix_padding_ms: 300 },
      },
    })
    send(client, byHand)
    append(client, spoken(1, 5).pcm)
    send(client, { type: "input_audio_buffer.clear" })
    await client.until(() => of(client, "input_audio_buffer.cleared").length === 1)
    const { heard, pcm } = spoken(1, 6)
    append(client, pcm)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until(() => of(client, completed).length === 1)
    const { text } = await syncAnswer(node, heard, { model: "listener", language: "fr", prompt: "names" })
    expect(of(client, completed)[0]!.transcript).toBe(text)
    expect(of(client, "conversation.item.created").length).toBe(1)
    expect(of(client, "conversation.item.added").length).toBe(0)
    client.socket.close()
  })

  it("is charged by the item", async () => {
    const made = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "realtime" })),
    )
    const client = await open("intent=transcription", made.apiKey)
    send(client, byHand)
    for (const seed of [1, 2]) {
      append(client, spoken(1, seed).pcm)
      send(client, { type: "input_audio_buffer.commit" })
    }
    await client.until(() => of(client, completed).length === 2)
    append(client, spoken(1, 3).pcm)
    // Events are carried out in their order: the answer to this one says that the audio before it was received.
    send(client, byHand)
    await client.until(() => of(client, "session.updated").length === 2)
    client.vanish()
    await untilIdle(node)
    await eventually(async () => (await metered(node, "realtime")).requests === 3, "three receipts")
    const { audioMs } = await metered(node, "realtime")
    expect(audioMs).toBeGreaterThan(2_900)
    expect(audioMs).toBeLessThanOrEqual(3_003)
  })
})

describe("an event that is wrong", () => {
  const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
    ["no JSON", "{", /valid JSON/],
    ["no type", "{}", /^type: /],
    ["an unknown type", '{"type":"response.create"}', /^type: is no event of a transcription session/],
    ["no audio", '{"type":"input_audio_buffer.append"}', /^audio: /],
    ["no base64", '{"type":"input_audio_buffer.append","audio":"***"}', /^audio: must be 16-bit PCM/],
    ["half a sample", '{"type":"input_audio_buffer.append","audio":"AAAA"}', /^audio: must be 16-bit PCM/],
    ["nothing to commit", '{"type":"input_audio_buffer.commit"}', /^input_audio_buffer: is empty/],
    [
      "an unknown model",
      JSON.stringify({
        type: "session.update",
        session: { type: "transcription", audio: { input: { transcription: { model: "whisper-9" } } } },
      }),
      /Model not loaded/,
    ],
    [
      "telephone audio",
      '{"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcmu"}}}}}',
      /must be audio\/pcm/,
    ],
  ]
  it.each(cases)("%s: an error with its id, and the socket goes on", async (_, frame, message) => {
    const client = await open()
    client.send(frame.endsWith("}") && frame !== "{}" ? frame.replace(/}$/, ',"event_id":"mine"}') : frame)
    await client.until(() => of(client, "error").length === 1)
    const { error } = of(client, "error")[0]!
    expect(error.message).toMatch(message)
    if (frame.length > 2) expect(error.event_id).toBe("mine")
    send(client, byHand)
    append(client, spoken(0.5, 1).pcm)
    send(client, { type: "input_audio_buffer.commit" })
    await client.until(() => of(client, completed).length === 1)
    client.socket.close()
  })

  it("a binary frame, too", async () => {
    const client = await open()
    client.socket.send(Buffer.alloc(640))
    await client.until(() => of(client, "error").length === 1)
    client.socket.close()
  })
})

describe("admission", () => {
  it.each<readonly [string, () => string, number]>([
    ["an unknown key", () => address("intent=transcription", `svc_${"A".repeat(32)}`), 401],
    ["an organization without a cent", () => address("intent=transcription", node.keys.broke), 402],
    ["an unknown model", () => address("intent=transcription&model=whisper-9"), 404],
    ["a text model", () => address("intent=transcription&model=fake"), 400],
    ["a conversation", () => address("intent=conversation"), 400],
  ])("not %s, before the upgrade", async (_, where, status) => {
    expect(((await SocketClient.connect(where())) as Refused).status).toBe(status)
  })

  it("not for longer than its key", async () => {
    const made = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "dev", user: "soon-gone" })),
    )
    const client = await open("intent=transcription", made.apiKey)
    await node.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(made.keyId)))
    expect(await client.closed).toEqual({ code: 1008, reason: "credential revoked" })
  })
})

it("a node that stops completes what was said, then closes with 1001", async () => {
  const stopping = await startNode({ models: [listener({ callMs: 20 })] })
  try {
    await untilLoaded(stopping, "listener")
    const url = `${stopping.socketBase}/v1/realtime?token=${stopping.keys.dev}`
    const client = await SocketClient.open(url)
    send(client, byHand)
    append(client, spoken(1.2, 1).pcm)
    // Its answer comes when the audio before it has been heard.
    send(client, { type: "conversation.item.retrieve", item_id: "none" })
    await client.until((events) => events.some(({ type }) => type === "error"))
    await stopping.run(Effect.flatMap(Drain, (drain) => drain.close))
    expect((await client.closed).code).toBe(1001)
    expect(of(client, completed).length).toBe(1)
    expect(client.frames.at(-1)!.type).toBe(completed)
  } finally {
    await stopping.stop()
  }
})

it("counts each item as a request: beyond the limit an error, and the socket goes on", async () => {
  const limited = await startNode({ models: [listener()], rateLimit: 4 })
  try {
    await untilLoaded(limited, "listener")
    const token = limited.keys.credit
    const url = `${limited.socketBase}/v1/realtime?token=${token}&intent=transcription&model=listener`
    const client = await SocketClient.open(url)
    send(client, byHand)
    const { pcm } = spoken(0.5, 3)
    for (let i = 0; i < 6; i++) {
      append(client, pcm)
      send(client, { type: "input_audio_buffer.commit" })
    }
    // The handshake was the first request of the minute.
    await client.until(() => of(client, completed).length === 3 && of(client, "error").length > 0)
    const errors = of(client, "error").map(({ error }) => error.message)
    expect(errors).toContain("Rate limit exceeded")
    expect(client.socket.readyState).toBe(client.socket.OPEN)
    client.socket.close()
  } finally {
    await limited.stop()
  }
})
