// Live sessions against sockets whose captions come at known times. Its tests wait, so they run at the same time.
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { type WebSocket, WebSocketServer } from "ws"
import type { Target } from "#harness/client/Exchange.ts"
import type { LiveProtocolName } from "#harness/client/LiveProtocols.ts"
import { runLive } from "#harness/client/LiveRequest.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { request } from "#harness/Requests.ts"
import { freePort } from "../support/servers/FreePort.ts"

/** A second and a half of audio; its words end at 0.5, 1 and 1.5 s. */
const clip = makeClip("a", new Int16Array(24_000).fill(100), "one two six")

const servers: Array<WebSocketServer> = []
afterAll(() => {
  for (const server of servers) {
    for (const socket of server.clients) socket.terminate()
    server.close()
  }
})

const portOf = (server: WebSocketServer): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const serve = async (
  onSession: (socket: WebSocket, path: string) => void,
  { refuse, timeoutMs = 60_000 }: { readonly refuse?: number; readonly timeoutMs?: number } = {},
): Promise<Target> => {
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    ...(refuse === undefined ? {} : { verifyClient: (_, done) => done(false, refuse) }),
  })
  servers.push(server)
  server.on("connection", (socket, asked) => {
    socket.on("error", () => {})
    onSession(socket, asked.url ?? "")
  })
  await new Promise((resolve) => server.once("listening", resolve))
  return {
    base: `http://127.0.0.1:${portOf(server)}`,
    headers: { authorization: "Bearer k" },
    timeoutMs,
  }
}

const talk = (
  target: Target,
  protocol: LiveProtocolName,
  signal = new AbortController().signal,
  spoken = clip,
) =>
  request(
    {
      target,
      plans: { live: { model: "m", clips: [spoken], dataset: "one", language: "en", fields: {}, protocol } },
      shares: { live: 1 },
      seed: 1,
    },
    "live",
    { usage: true },
    { index: 0, scheduledAtMs: performance.now(), client: 0, signal },
  )

const say = (socket: WebSocket, event: object) => socket.send(JSON.stringify(event))

it.concurrent(
  "audio ahead is sent at once, and its captions have no lag; a session that fails told its lags",
  async () => {
    const target = await serve((socket) => {
      let bytes = 0
      socket.on("message", (data: Buffer) => {
        const before = Math.floor(bytes / 16_000)
        bytes += data.length
        const halves = Math.floor(bytes / 16_000)
        // The first second of audio is sent at once: its caption is late if it takes a second.
        if (halves > before && halves > 1)
          say(socket, { type: "transcript.text.delta", op: "append", delta: "one ", audio_ms: halves * 500 })
        // Closes before the final result.
        if (halves === 3) socket.close()
      })
    })
    const lags: Array<number> = []
    const opened: Array<number> = []
    const beganMs = performance.now()
    const asked = {
      model: "m",
      clip,
      language: undefined,
      protocol: "edgewise" as const,
      aheadSeconds: 1,
      onOpen: () => void opened.push(performance.now()),
      onCaptionLag: (lagMs: number) => void lags.push(lagMs),
    }
    const session = runLive(target, asked, beganMs, new AbortController().signal)
    await expect(session).rejects.toThrow("the session was closed")
    // Of 1 s there is none; that of 1.5 s came half a second later.
    expect([opened.length, lags.length]).toEqual([1, 1])
    expect(performance.now() - beganMs).toBeGreaterThan(450)
  },
)

it.concurrent("edgewise's socket: lag of captions and words, flicker, final text", async () => {
  const lateMs = 300
  const target = await serve((socket, path) => {
    expect(path).toBe("/v1/audio/transcriptions/ws?model=m&language=en")
    let bytes = 0
    let captions = 0
    let told = 0
    socket.on("message", async (data: Buffer, isBinary) => {
      if (!isBinary) {
        // Where the process stands still, the rest of the audio comes at once, and its end with it.
        while (told < 2) await sleep(10)
        await sleep(200)
        return say(socket, { type: "transcript.text.done", text: "One two six." })
      }
      bytes += data.length
      const halves = Math.floor(bytes / 16_000)
      if (halves <= captions) return
      captions = halves
      const text = ["one", "one to", "one two sick"][halves - 1]
      await sleep(lateMs)
      say(socket, { type: "transcript.text.delta", op: "replace", delta: text, audio_ms: 500 * halves })
      told++
    })
  })
  const { failure, measured } = await talk(target, "edgewise")
  expect(failure).toBeUndefined()
  const { figures, pooled, words } = measured!
  // The frame that completes half a second is sent with it; the last caption may come after the end.
  expect(pooled!.caption_lag!.length).toBeGreaterThanOrEqual(2)
  for (const lag of [...pooled!.caption_lag!, ...pooled!.word_lag!]) expect(lag / lateMs).toBeGreaterThan(0.9)
  // Counted from the end of the caption's audio, sent in frames of 40 ms, and not from the beginning of the session. All of them end before the session does.
  for (const [at, lag] of pooled!.caption_lag!.entries())
    expect(lag).toBeLessThan(figures.e2e! - 500 * (at + 1) + 50)
  // "to" was changed, and "sick" in the final text if its caption was shown.
  expect([1 / 3, 2 / 3]).toContain(figures.flicker)
  expect(words).toEqual({ wrong: 0, words: 3 })
  expect(figures.final! / 200).toBeGreaterThan(0.9)
  // Sent in real time.
  expect(figures.e2e! / 1_500).toBeGreaterThan(1)
})

it.concurrent("OpenAI's realtime events: the whole clip is one item", async () => {
  const types: Array<string> = []
  let samples = 0
  const target = await serve((socket, path) => {
    expect(path).toBe("/v1/realtime?intent=transcription&model=m")
    say(socket, { type: "session.created", session: {} })
    socket.on("message", (data: Buffer) => {
      const event = JSON.parse(String(data))
      if (types.at(-1) !== event.type) types.push(event.type)
      if (event.type === "session.update") expect(event.session.audio.input.turn_detection).toBeNull()
      if (event.type === "input_audio_buffer.append") samples += Buffer.from(event.audio, "base64").length / 2
      if (event.type !== "input_audio_buffer.commit") return
      const part = "conversation.item.input_audio_transcription."
      say(socket, { type: "input_audio_buffer.committed", item_id: "i" })
      say(socket, { type: `${part}delta`, item_id: "i", delta: "one " })
      say(socket, { type: `${part}delta`, item_id: "i", delta: "two" })
      say(socket, { type: `${part}completed`, item_id: "i", transcript: "one two" })
    })
  })
  const { measured } = await talk(target, "realtime")
  expect(types).toEqual(["session.update", "input_audio_buffer.append", "input_audio_buffer.commit"])
  // 24 kHz instead of 16.
  expect(samples).toBe(36_000)
  expect(measured!.words).toEqual({ wrong: 1, words: 3 })
  expect(measured!.figures.flicker).toBe(0)
})

describe.concurrent("a session that", () => {
  const key = async (target: Target, protocol: LiveProtocolName = "edgewise") =>
    (await talk(target, protocol)).failure?.key

  it("is refused fails with the status", async () => {
    expect(await key(await serve(() => {}, { refuse: 503 }))).toBe("503")
  })

  it("is closed in the middle fails at once", async () => {
    let bytes = 0
    const target = await serve((socket) => {
      socket.once("message", () => socket.close(1011, "no engine"))
      socket.on("message", (data: Buffer) => {
        bytes += data.length
      })
    })
    // Longer than a machine may stand still: then all audio until now is sent at once.
    const long = makeClip("long", new Int16Array(10 * 60 * 16_000).fill(100), "one two six")
    const { failure } = await talk(target, "edgewise", new AbortController().signal, long)
    expect(failure?.key).toBe("closed early")
    // Not after the clip's end.
    expect(bytes).toBeLessThan(2 * long.samples.length)
  })

  it("reports an error fails with it", async () => {
    const target = await serve((socket) =>
      say(socket, { type: "error", error: { message: "no such model" } }),
    )
    const { failure } = await talk(target, "realtime")
    expect(failure).toEqual({ key: "error event", detail: "no such model" })
  })

  it("sends garbage fails", async () => {
    expect(await key(await serve((socket) => socket.send("hello")))).toBe("wrong reply")
  })

  it("never ends is a timeout", async () => {
    expect(await key(await serve(() => {}, { timeoutMs: 3_000 }))).toBe("timeout")
  })

  it("does not exist is unreachable", async () => {
    const target = { ...(await serve(() => {})), base: `http://127.0.0.1:${await freePort()}` }
    expect(await key(target)).toBe("unreachable")
  })

  it("is interrupted ends", async () => {
    const ending = new AbortController()
    const target = await serve((socket) => socket.once("message", () => ending.abort()))
    expect((await talk(target, "edgewise", ending.signal)).failure?.key).toBe("unfinished")
  })
})
