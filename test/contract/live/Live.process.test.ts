// GET /v1/audio/transcriptions/ws: events, close codes and refusals (protocol 10 and 16), what invalid clients get,
// what is charged, and what remains after an engine crash or a disconnect. The engine transcribes made-up words.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Drain } from "#actors/Drain.ts"
import { marks } from "#engines/fake/FakeWords.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import {
  deltas,
  lastWord,
  listener,
  liveAddress,
  noise,
  openLive,
  speak,
  syncAnswer,
  untilCaptionsAreCheap,
} from "../../support/clients/LiveClient.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { metered } from "../../support/clients/TranscriptionClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

const stop = { type: "stop" }
const half = 16_000

let node: TestNode
beforeAll(async () => {
  const lazy = listener({}, { id: "lazy", runtime: { load: "demand" } })
  const fragile = listener({}, { id: "fragile" })
  node = await startNode({ models: [fakeModel, listener(), lazy, fragile] })
  await untilCaptionsAreCheap(node, "listener")
})
afterAll(() => node.stop())

/** Sends audio, then stop; returns the final result and how the socket closed. */
const utter = async (pcm: Buffer, query: Readonly<Record<string, string>> = {}) => {
  const client = await openLive(node, query)
  speak(client, pcm, 6_400)
  client.send(stop)
  return { client, word: await lastWord(client), closed: await client.closed }
}

describe("a session", () => {
  it("is a delta a window, then done with a file's words, then close", async () => {
    const pcm = noise(3)
    const client = await openLive(node, { model: "listener", window_s: "0.5" })
    for (let i = 0; i < 6; i++) {
      speak(client, pcm.subarray(i * half, (i + 1) * half), 640)
      await client.until(() => deltas(client).length === i + 1)
    }
    client.send(stop)
    const { duration, language, text } = await syncAnswer(node, pcm, { model: "listener" })
    expect(await lastWord(client)).toStrictEqual({ type: "transcript.text.done", text, duration, language })
    expect(await client.closed).toEqual({ code: 1000, reason: "" })
    expect(deltas(client)[0]).toStrictEqual({
      type: "transcript.text.delta",
      delta: expect.stringMatching(/^[a-z]{4} /),
      rev: 1,
      op: "append",
      stable_chars: 0,
      audio_ms: 500,
    })
    expect(deltas(client).map(({ audio_ms, rev }) => [rev, audio_ms])).toEqual(
      [1, 2, 3, 4, 5, 6].map((rev) => [rev, rev * 500]),
    )
    expect(new Set(deltas(client).map(({ op }) => op))).toEqual(new Set(["append", "replace"]))
    expect(deltas(client).at(-1)!.stable_chars).toBeGreaterThan(0)
    expect(client.frames.length).toBe(7)
  })

  it("has a window of one second, and a model, where none is named", async () => {
    const pcm = noise(2)
    const client = await openLive(node)
    speak(client, pcm.subarray(0, 2 * half - 2))
    speak(client, pcm.subarray(2 * half - 2, 2 * half))
    await client.until(() => deltas(client).length === 1)
    expect(deltas(client)[0]).toMatchObject({ audio_ms: 1_000 })
    client.send(stop)
    expect((await lastWord(client)).type).toBe("transcript.text.done")
  })

  it.each<Readonly<Record<string, string>>>([
    { language: "fr" },
    { prompt: "Some names: Ada, Grace" },
    { language: "en", prompt: "x" },
  ])("takes %s as a file does", async (query) => {
    const pcm = noise(5, 3)
    const { word } = await utter(pcm, { model: "listener", ...query })
    const answer = await syncAnswer(node, pcm, { model: "listener", ...query })
    expect(word).toMatchObject({ text: answer.text, language: answer.language })
    expect(word.text).not.toBe((await utter(pcm, { model: "listener", language: "en" })).word.text)
  })

  it("loads a model that no request has used yet", async () => {
    const { word } = await utter(noise(1), { model: "lazy" })
    expect(word.type).toBe("transcript.text.done")
  })

  it("without audio is an empty done", async () => {
    const { closed, word } = await utter(Buffer.alloc(0))
    expect(word).toStrictEqual({ type: "transcript.text.done", text: "", duration: 0, language: "en" })
    expect(closed.code).toBe(1000)
  })

  it("transcribes frames of two bytes, empty frames, and 2 MB at once", async () => {
    const pcm = noise(62, 4)
    const client = await openLive(node)
    speak(client, pcm.subarray(0, 2_000), 2)
    client.socket.send(Buffer.alloc(0))
    client.socket.send(pcm.subarray(2_000))
    client.send(stop)
    const { text } = await syncAnswer(node, pcm, { model: "listener" })
    expect(await lastWord(client)).toMatchObject({ text, duration: 62 })
  })

  it("warns once, in the last ten seconds, and ends at 120 s of audio: done for exactly that, then 4008", async () => {
    const pcm = noise(121, 6)
    const client = await openLive(node)
    const sendUntil = async (fromMs: number, audioMs: number) => {
      client.socket.send(pcm.subarray(fromMs * 32, audioMs * 32))
      await client.until(() => deltas(client).some(({ audio_ms }) => audio_ms === audioMs))
    }
    const warnings = () => client.frames.filter(({ type }) => type === "warning")
    await sendUntil(0, 109_000)
    expect(warnings()).toEqual([])
    await sendUntil(109_000, 111_000)
    await sendUntil(111_000, 112_000)
    for (let at = 112_000 * 32; at < pcm.length; at += 8 * half)
      client.socket.send(pcm.subarray(at, at + 8 * half))
    const { text } = await syncAnswer(node, pcm.subarray(0, 240 * half), { model: "listener" })
    expect(await lastWord(client)).toMatchObject({ type: "transcript.text.done", text, duration: 120 })
    expect(await client.closed).toEqual({ code: 4008, reason: "session limit" })
    expect(warnings()).toEqual([{ type: "warning", warning: "session limit", remaining_ms: 9_000 }])
  })
})

describe("a client that errs", () => {
  const bad: ReadonlyArray<readonly [string, Buffer | string, RegExp]> = [
    ["an odd-length frame", Buffer.alloc(641), /^frame: must be 16-bit PCM/],
    ["a single byte", Buffer.alloc(1), /^frame: must be 16-bit PCM/],
    ["a WAV file", Buffer.from("RIFF\x24\x00\x00\x00WAVE"), /^frame: must be raw PCM/],
    ["an Ogg file", Buffer.from("OggS\x00\x02"), /^frame: must be raw PCM/],
    ["an MP3 file", Buffer.from("ID3\x04"), /^frame: must be raw PCM/],
    ["text that is no JSON", "stop", /^frame: must be/],
    ["an empty text", "", /^frame: must be/],
    ["JSON that is no object", "[1]", /^frame: must be/],
    ["an unknown type", '{"type":"start"}', /^frame: must be/],
    ["no type", "{}", /^frame: must be/],
    ["a type that is no text", '{"type":7}', /^frame: must be/],
    ["deep JSON", `${"[".repeat(50_000)}${"]".repeat(50_000)}`, /^frame: must be/],
  ]
  it.each(bad)("with %s gets one error, then 1003", async (_, frame, error) => {
    const client = await openLive(node)
    client.socket.send(frame, { binary: typeof frame !== "string" })
    client.send(stop)
    expect(await lastWord(client)).toStrictEqual({ type: "error", error: expect.stringMatching(error) })
    expect((await client.closed).code).toBe(1003)
    expect(client.frames.length).toBe(1)
  })

  it("midway gets the error and no done", async () => {
    const client = await openLive(node)
    speak(client, noise(1))
    await client.until(() => deltas(client).length === 1)
    client.socket.send(Buffer.alloc(3))
    client.send(stop)
    await client.closed
    expect(client.frames.filter(({ type }) => type !== "transcript.text.delta")).toEqual([
      { type: "error", error: expect.any(String) },
    ])
  })

  it("by a second stop, or by audio after stop, gets no further events", async () => {
    const pcm = noise(1)
    const client = await openLive(node)
    speak(client, pcm)
    for (const frame of ['{"type":"stop"}', '{"type":"stop"}', "nonsense"]) client.send(frame)
    client.socket.send(noise(1, 9))
    client.socket.send(Buffer.alloc(3))
    const { text } = await syncAnswer(node, pcm, { model: "listener" })
    expect(await lastWord(client)).toMatchObject({ text, duration: 1 })
    expect((await client.closed).code).toBe(1000)
    expect(client.frames.filter(({ type }) => type !== "transcript.text.delta").length).toBe(1)
  })

  it("with a frame over 4 MiB is closed with 1009", async () => {
    const client = await openLive(node)
    client.socket.send(Buffer.alloc(4 * 1024 * 1024 + 2))
    expect((await client.closed).code).toBe(1009)
  })

  it("with 2 MB at once, or as one odd-length frame of that size: transcribed, and 1003", async () => {
    const pcm = noise(65, 11).subarray(0, 2_000_000)
    const whole = await openLive(node)
    whole.socket.send(pcm)
    whole.send(stop)
    expect(await lastWord(whole)).toMatchObject({ type: "transcript.text.done", duration: 62.5 })
    const odd = await openLive(node)
    odd.socket.send(pcm.subarray(1))
    expect(await lastWord(odd)).toStrictEqual({
      type: "error",
      error: expect.stringMatching(/^frame: must be 16-bit PCM/),
    })
    expect((await odd.closed).code).toBe(1003)
  })

  it("with a flood of pings is served like any other", async () => {
    const client = await openLive(node)
    for (let i = 0; i < 5_000; i++) client.socket.ping()
    speak(client, noise(1))
    client.send(stop)
    expect(await lastWord(client)).toMatchObject({ type: "transcript.text.done", duration: 1 })
  })
})

describe("admission", () => {
  const refused = async (address: string): Promise<readonly [number, string]> => {
    const answer = (await SocketClient.connect(address)) as Refused
    return [answer.status, (JSON.parse(answer.body) as { detail: string }).detail]
  }

  it("a key in the header, or in a browser's subprotocol", async () => {
    const base = `${node.socketBase}/v1/audio/transcriptions/ws`
    const byHeader = await SocketClient.open(base, { authorization: `Bearer ${node.keys.dev}` })
    byHeader.send(stop)
    expect((await lastWord(byHeader)).type).toBe("transcript.text.done")
    const secret = `openai-insecure-api-key.${node.keys.dev}`
    const byProtocol = await SocketClient.open(base, {}, [secret, "realtime"])
    expect(byProtocol.socket.protocol).toBe("realtime")
    byProtocol.send(stop)
    expect((await lastWord(byProtocol)).type).toBe("transcript.text.done")
    const alone = await SocketClient.open(base, {}, [secret])
    expect(alone.socket.protocol).toBe(secret)
    alone.socket.close()
  })

  it.each<readonly [string, () => Readonly<Record<string, string>>, number, string | RegExp]>([
    ["no credential", () => ({ token: "" }), 401, "Missing bearer token"],
    ["an unknown key", () => ({ token: `svc_${"A".repeat(32)}` }), 401, "Invalid API key"],
    ["a revoked key", () => ({ token: node.keys.revoked }), 401, "Invalid API key"],
    ["nonsense", () => ({ token: "nonsense" }), 401, "Invalid token: Not enough segments"],
    ["an organization without a cent", () => ({ token: node.keys.broke }), 402, "Billing access denied"],
    ["an unknown model", () => ({ model: "unknown" }), 404, "Model not loaded"],
    ["a text model", () => ({ model: "fake" }), 400, "model: fake does not transcribe"],
    ["a language that the model lacks", () => ({ model: "listener", language: "de" }), 400, /^language: /],
    ["a language that is none", () => ({ language: "english" }), 400, /^language: /],
    ["a prompt without end", () => ({ prompt: "p".repeat(4_097) }), 400, /^prompt: /],
    ["a window too short", () => ({ window_s: "0.2" }), 400, /^window_s: must be between 0.25 and 10/],
    ["a window too long", () => ({ window_s: "10.01" }), 400, /^window_s: /],
    ["a window that is no number", () => ({ window_s: "1s" }), 400, /^window_s: /],
    ["an infinite window", () => ({ window_s: "Infinity" }), 400, /^window_s: /],
    ["a negative window", () => ({ window_s: "-1" }), 400, /^window_s: /],
    ["a hexadecimal window", () => ({ window_s: "0x1" }), 400, /^window_s: /],
  ])("not %s, before the upgrade", async (_, query, status, detail) => {
    expect(await refused(liveAddress(node, query()))).toEqual([
      status,
      typeof detail === "string" ? detail : expect.stringMatching(detail),
    ])
  })

  it("windows at both ends of the range", async () => {
    for (const window_s of ["0.25", "10", "10.0", ""]) {
      const client = await openLive(node, { window_s })
      client.socket.close()
    }
  })

  it("not a user over the limit", async () => {
    const limited = await startNode({ models: [listener()], rateLimit: 2 })
    try {
      for (let i = 0; i < 2; i++) (await openLive(limited)).socket.close()
      const answer = (await SocketClient.connect(liveAddress(limited))) as Refused
      expect(answer.status).toBe(429)
      expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0)
    } finally {
      await limited.stop()
    }
  })

  it("not a plain request, and not another method", async () => {
    const headers = { authorization: `Bearer ${node.keys.dev}` }
    const plain = await node.fetch("/v1/audio/transcriptions/ws", { headers })
    expect(plain.status).toBe(400)
    expect(await plain.json()).toEqual({ detail: "upgrade: this address speaks WebSocket only" })
    const posted = await node.fetch("/v1/audio/transcriptions/ws", { method: "POST", headers })
    expect(posted.status).toBe(405)
  })

  it("not more than the engine can serve, by measurement: 503 before the upgrade", async () => {
    const busy = await startNode({ models: [listener({ callMs: 620 })] })
    try {
      const first = await openLive(busy)
      speak(first, noise(1))
      await first.until(() => deltas(first).length === 1)
      // With a caption every two seconds, the lowest rate, each takes a third of the engine; three exceed the share of
      // 0.9. On a machine so busy that a call takes 0.28 s more, the second one is refused.
      const next = await SocketClient.connect(liveAddress(busy))
      const second = next instanceof SocketClient ? next : first
      // Those that have sent no audio for two seconds are not counted: on a machine that stands still one may be let in.
      let refusal: Refused | undefined
      await eventually(async () => {
        for (const client of [first, second]) speak(client, noise(0.02))
        const third = await SocketClient.connect(liveAddress(busy))
        if (!(third instanceof SocketClient)) {
          refusal = third
          return true
        }
        third.socket.close()
        await third.closed
        return false
      }, "a third one is refused")
      const third = refusal!
      expect(third.status).toBe(503)
      expect(JSON.parse(third.body)).toEqual({ detail: "Model is at capacity" })
      expect(Number(third.headers["retry-after"])).toBeGreaterThan(0)
      // A longer window costs less. Where a busy machine made the first caption dear, further ones are measured.
      const slow = { window_s: "10" }
      let longer = await SocketClient.connect(liveAddress(busy, slow))
      while (!(longer instanceof SocketClient)) {
        const before = deltas(first).length
        speak(first, noise(2))
        await first.until(() => deltas(first).length > before)
        longer = await SocketClient.connect(liveAddress(busy, slow))
      }
      for (const client of [first, second, longer]) client.socket.close()
      await Promise.all([first.closed, second.closed, longer.closed])
      await eventually(async () => {
        const again = await SocketClient.connect(liveAddress(busy))
        if (!(again instanceof SocketClient)) return false
        again.socket.close()
        return true
      }, "there is room again")
    } finally {
      await busy.stop()
    }
  })
})

describe("what is charged", () => {
  const created = async (org: string) => {
    const made = await node.run(Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org })))
    return made.apiKey
  }

  it("all audio of a session, once, to the millisecond rounded up", async () => {
    const token = await created("charged-stop")
    const client = await SocketClient.open(liveAddress(node, { token }))
    speak(client, noise(2.5).subarray(0, 2 * 39_990), 999 * 2)
    client.send(stop)
    await client.closed
    await untilIdle(node)
    // 39,990 samples are 2,499.375 ms.
    expect(await metered(node, "charged-stop")).toEqual({ requests: 1, audioMs: 2_500 })
  })

  it("what was sent by a client that vanishes, and the engine is let go", async () => {
    const token = await created("charged-vanish")
    const client = await SocketClient.open(liveAddress(node, { token }))
    speak(client, noise(3))
    await client.until(() => deltas(client).length > 0)
    client.vanish()
    await untilIdle(node)
    expect(await metered(node, "charged-vanish")).toEqual({ requests: 1, audioMs: 3_000 })
  })

  it("nothing for nothing", async () => {
    const token = await created("charged-nothing")
    for (const end of [stop, undefined]) {
      const client = await SocketClient.open(liveAddress(node, { token }))
      if (end === undefined) client.vanish()
      else client.send(end)
      await client.closed
    }
    await untilIdle(node)
    expect(await metered(node, "charged-nothing")).toEqual({ requests: 0, audioMs: 0 })
  })

  it("when the engine fails, only what the client received", async () => {
    const token = await created("charged-failure")
    const client = await SocketClient.open(liveAddress(node, { token }))
    speak(client, noise(1))
    await client.until(() => deltas(client).length === 1)
    speak(client, marked(marks.fail, noise(1)))
    expect(await lastWord(client)).toEqual({
      type: "error",
      error: "The model failed to produce an answer",
    })
    expect((await client.closed).code).toBe(1011)
    await untilIdle(node)
    expect(await metered(node, "charged-failure")).toEqual({ requests: 1, audioMs: 1_000 })
  })
})

/** Audio with a sample in it at which the engine fails in the marked way. */
const marked = (mark: number, pcm: Buffer): Buffer => {
  const copy = Buffer.from(pcm)
  copy.writeInt16LE(Math.round(mark * 32_768), 4_000)
  return copy
}

describe("what ends a session from this side", () => {
  it("a revoked key: an error, then 1008", async () => {
    const made = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "dev", user: "leaving" })),
    )
    const client = await SocketClient.open(liveAddress(node, { token: made.apiKey }))
    await node.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(made.keyId)))
    expect(await lastWord(client)).toEqual({ type: "error", error: "Invalid API key" })
    expect(await client.closed).toEqual({ code: 1008, reason: "credential revoked" })
  })

  it("an engine that crashes: an error to its sessions, then 1011, and nothing to others", async () => {
    const other = await openLive(node)
    const victims = await Promise.all([1, 2, 3].map(() => openLive(node, { model: "fragile" })))
    const pid = node.gauges("fragile").pid
    for (const client of victims) speak(client, noise(0.5))
    speak(victims[0]!, marked(marks.crash, noise(1)))
    for (const client of victims.slice(1)) speak(client, noise(1))
    expect((await lastWord(victims[0]!)).error).toBe("The model's engine stopped unexpectedly")
    expect((await victims[0]!.closed).code).toBe(1011)
    await eventually(() => {
      const now = node.gauges("fragile").pid
      return now !== undefined && now !== pid
    }, "the engine is back")
    const { word } = await utter(noise(1), { model: "fragile" })
    expect(word.type).toBe("transcript.text.done")
    speak(other, noise(1))
    other.send(stop)
    expect(await lastWord(other)).toMatchObject({ type: "transcript.text.done", duration: 1 })
    for (const client of victims.slice(1)) client.socket.close()
  })

  it("nothing is left behind", async () => {
    await untilIdle(node)
    await eventually(() => node.counts.webSockets === 0 && node.counts.inFlight === 0, "no socket is open")
  })
})

describe("a node that stops", () => {
  it("lets sessions have their last word: done, then 1001; new ones get 503", async () => {
    const stopping = await startNode({ models: [listener({ callMs: 50 })] })
    try {
      const pcm = noise(1.5)
      const [speaking, silent] = [await openLive(stopping), await openLive(stopping)]
      speak(speaking, pcm)
      await speaking.until(() => deltas(speaking).length === 1)
      const drained = stopping.run(Effect.flatMap(Drain, (drain) => drain.close))
      const { text } = await syncAnswer(node, pcm, { model: "listener" })
      expect(await lastWord(speaking)).toMatchObject({ type: "transcript.text.done", text })
      expect((await speaking.closed).code).toBe(1001)
      expect((await silent.closed).code).toBe(1001)
      expect(silent.frames).toEqual([])
      await drained
      const late = (await SocketClient.connect(liveAddress(stopping))) as Refused
      expect([late.status, JSON.parse(late.body)]).toEqual([503, { detail: "Server is shutting down" }])
    } finally {
      await stopping.stop()
    }
  })
})
