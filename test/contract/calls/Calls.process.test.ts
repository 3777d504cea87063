// WebRTC calls: offer and answer, a conversation over the data channel with audio in both directions, interruption, sideband, hanging up, and
// ends that were not wanted.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { voice } from "../../support/audio/Voice.ts"
import { CallClient, canCall, noLibrary } from "../../support/clients/CallClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { isLong } from "../../support/groups/Runs.ts"
import { uses } from "../../support/groups/Uses.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { freePort } from "../../support/servers/FreePort.ts"
import { browserOffer } from "../../support/wire/BrowserOffer.ts"

let node: TestNode
beforeAll(async () => {
  uses("process", "a listening server")
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice],
    settings: canCall ? { webrtcPort: String(await freePort()) } : {},
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

type Frame = Readonly<Record<string, unknown>>
const script = (steps: object) => `fake:${JSON.stringify(steps)}`
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
const typesOf = (frames: ReadonlyArray<Frame>) => frames.map(({ type }) => type)
const loud = 500

const post = (
  body: string | FormData,
  headers: Readonly<Record<string, string>> = {},
  path = "/v1/realtime/calls",
) =>
  node.fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${node.keys.dev}`, ...headers },
    body,
  })
const offer = { "content-type": "application/sdp" }

describe("a call", onlyWhere(canCall, noLibrary), () => {
  it("is a conversation: events over the data channel, audio beside them", async () => {
    const caller = await CallClient.open(node)
    const [created] = caller.of("session.created")
    expect(created?.session).toMatchObject({ type: "realtime", model: "gpt-realtime" })
    expect(caller.location).toMatch(/^\/v1\/realtime\/calls\/rtc_/)
    caller.ask(script({ tokens: 1, text: "It is noon there." }))
    await caller.nth("output_audio_buffer.stopped")
    const types = typesOf(caller.events)
    expect(types).not.toContain("response.output_audio.delta")
    expect(types).not.toContain("error")
    expect(types.indexOf("output_audio_buffer.started")).toBeGreaterThan(types.indexOf("response.created"))
    expect(types.indexOf("output_audio_buffer.stopped")).toBeGreaterThan(types.indexOf("response.done"))
    // On a busy machine packets leave later than the node counts them as heard.
    await eventually(() => caller.packets.filter(({ peak }) => peak > loud).length > 10, "speech is heard")
    // The numbers and the clock go on without a jump, through speech and silence.
    for (const [at, packet] of caller.packets.slice(1).entries()) {
      const before = caller.packets[at]!
      expect((packet.sequence - before.sequence) & 0xffff).toBe(1)
      expect((packet.timestamp - before.timestamp) >>> 0).toBe(960)
    }
    caller.close()
  })

  it("hears the caller: speech is a turn, is transcribed and answered", async () => {
    const caller = await CallClient.open(node)
    caller.event({
      type: "session.update",
      session: {
        type: "realtime",
        audio: {
          // A caller that gets no processor for a while is heard as silent: that must not end its turn.
          input: { transcription: {}, turn_detection: { type: "server_vad", silence_duration_ms: 2_000 } },
        },
      },
    })
    await caller.nth("session.updated")
    caller.send({ t: "say", samples: bytesToS16(voice(1.3)) })
    const started = await caller.nth("input_audio_buffer.speech_started")
    const stopped = await caller.nth("input_audio_buffer.speech_stopped")
    const spokenMs = Number(stopped.audio_end_ms) - Number(started.audio_start_ms)
    expect(spokenMs).toBeGreaterThan(1_000)
    // On a busy machine the pauses of the caller make the turn longer.
    if (isLong) expect(spokenMs).toBeLessThan(4_300)
    await caller.nth("conversation.item.input_audio_transcription.completed")
    await caller.nth("response.done")
    caller.close()
  })

  it("is interrupted: nothing more is played, the client is told, and the history keeps what was heard", async () => {
    const caller = await CallClient.open(node)
    caller.ask(script({ tokens: 1, text: long }))
    await eventually(() => caller.packets.filter(({ peak }) => peak > loud).length > 40, "it speaks")
    caller.send({ t: "say", samples: bytesToS16(voice(1.3)) })
    await caller.nth("output_audio_buffer.cleared")
    const clearedMs = performance.now()
    const cut = (await caller.nth("response.done")).response as Frame
    expect(cut.status).toBe("cancelled")
    const transcript = (await caller.nth("response.output_audio_transcript.done")).transcript as string
    expect(long.startsWith(transcript)).toBe(true)
    expect(transcript.length).toBeLessThan(long.length / 2)
    await eventually(() => performance.now() - clearedMs > 200, "packets that were under way have come")
    // The answer to the speech may follow; of the old one nothing is left.
    const types = typesOf(caller.events)
    expect(types.indexOf("input_audio_buffer.speech_started")).toBeLessThan(types.indexOf("response.done"))
    caller.close()
  })

  it("stops playing when it is told to, and says where", async () => {
    const caller = await CallClient.open(node)
    caller.ask(script({ tokens: 1, text: long }))
    await eventually(() => caller.packets.filter(({ peak }) => peak > loud).length > 20, "it speaks")
    caller.event({ type: "response.cancel" })
    caller.event({ type: "output_audio_buffer.clear" })
    await caller.nth("output_audio_buffer.cleared")
    const truncated = await caller.nth("conversation.item.truncated")
    expect(Number(truncated.audio_end_ms)).toBeGreaterThan(100)
    expect(typesOf(caller.events)).not.toContain("error")
    caller.close()
  })

  it("refuses audio in events, and goes on", async () => {
    const caller = await CallClient.open(node)
    caller.event({ type: "input_audio_buffer.append", audio: "AAAA", event_id: "mine" })
    expect((await caller.nth("error")).error).toMatchObject({ param: "type", event_id: "mine" })
    caller.event({ type: "session.update", session: { type: "realtime", instructions: "Be brief." } })
    await caller.nth("session.updated")
    caller.close()
  })

  it("takes a form with a session, and a client secret", async () => {
    const made = await node.post("/v1/realtime/client_secrets", {
      session: { type: "realtime", model: "gpt-realtime", instructions: "Bound." },
    })
    const { value } = (await made.json()) as { readonly value: string }
    const caller = await CallClient.make()
    const form = new FormData()
    form.set("sdp", new Blob([caller.offer], { type: "application/sdp" }))
    form.set(
      "session",
      new Blob([JSON.stringify({ type: "realtime", output_modalities: ["text"] })], {
        type: "application/json",
      }),
    )
    const reply = await node.fetch("/v1/realtime/calls", {
      method: "POST",
      headers: { authorization: `Bearer ${value}` },
      body: form,
    })
    expect(reply.status).toBe(201)
    expect(reply.headers.get("content-type")).toContain("application/sdp")
    expect(reply.headers.get("access-control-expose-headers")).toContain("Location")
    expect(reply.headers.get("location")).toMatch(/\/rtc_/)
    caller.send({ t: "answer", sdp: await reply.text() })
    const { session } = await caller.nth("session.created")
    expect(session).toMatchObject({ instructions: "Bound.", output_modalities: ["text"] })
    caller.close()
  })

  it("has a sideband: it sees the events, and its own are carried out", async () => {
    const caller = await CallClient.open(node)
    const socket = new WebSocket(`${node.socketBase}/v1/realtime?call_id=${caller.id}`, [
      "realtime",
      `openai-insecure-api-key.${node.keys.dev}`,
    ])
    const frames: Array<Frame> = []
    let close: { readonly reason: string } | undefined
    socket.addEventListener("message", ({ data }) => frames.push(JSON.parse(String(data)) as Frame))
    socket.addEventListener("close", (event) => {
      close = event
    })
    await eventually(() => socket.readyState === WebSocket.OPEN, "the sideband is open")
    socket.send(
      JSON.stringify({
        type: "session.update",
        session: { type: "realtime", instructions: "From the side." },
      }),
    )
    const { session } = await caller.nth("session.updated")
    expect(session).toMatchObject({ instructions: "From the side." })
    await eventually(() => typesOf(frames).includes("session.updated"), "the sideband sees it")
    expect((await post("", {}, `${caller.location}/hangup`)).status).toBe(200)
    await eventually(() => close !== undefined, "the sideband ends with the call")
    expect(close?.reason).toBe("hung up")
    caller.close()
  })

  it("ends when it is hung up, when the caller closes, and is then not found", async () => {
    const caller = await CallClient.open(node)
    const beganMs = performance.now()
    expect((await post("", {}, `${caller.location}/hangup`)).status).toBe(200)
    await eventually(() => caller.isClosed, "the caller's data channel is closed")
    if (isLong) expect(performance.now() - beganMs).toBeLessThan(10_000)
    expect((await post("", {}, `${caller.location}/hangup`)).status).toBe(404)
    const other = await CallClient.open(node)
    const { location } = other
    other.close()
    await eventually(
      async () => (await post("", {}, `${location}/hangup`)).status === 404,
      "the call that its caller has closed is gone",
    )
    caller.kill()
  })

  it("is of one organization", async () => {
    const caller = await CallClient.open(node)
    const reply = await node.fetch(`${caller.location}/hangup`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.credit}` },
    })
    expect(reply.status).toBe(404)
    caller.close()
  })

  it("ignores packets of another source or payload type, and replayed ones", async () => {
    const caller = await CallClient.open(node)
    const bytes = new Uint8Array(30).fill(0xf8)
    bytes[0] = 0x80
    for (const type of [0, 8, 111, 120]) {
      bytes[1] = type
      for (let nth = 0; nth < 20; nth++) caller.send({ t: "raw", bytes: bytes.slice() })
    }
    caller.event({ type: "session.update", session: { type: "realtime" } })
    await caller.nth("session.updated")
    expect(typesOf(caller.events)).not.toContain("error")
    caller.close()
  })

  it("ends when its messages come faster than they are read; other calls go on", async () => {
    const other = await CallClient.open(node)
    const caller = await CallClient.open(node)
    for (let nth = 0; nth < 5_000; nth++) caller.send({ t: "event", text: "{}" })
    await eventually(
      async () => (await post("", {}, `${caller.location}/hangup`)).status === 404,
      "the flooding call is gone",
    )
    other.event({ type: "session.update", session: { type: "realtime" } })
    await other.nth("session.updated")
    other.close()
    caller.kill()
  })
})

describe("an offer is refused", () => {
  it.each([
    ["without audio", browserOffer.replace(/m=audio[\s\S]*?(?=m=application)/, "")],
    ["with video", `${browserOffer}m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\n`],
    ["with a thousand lines", `${browserOffer}${"a=x\r\n".repeat(1_000)}`],
    ["with other codecs only", browserOffer.replace("opus/48000/2", "PCMU/8000")],
    ["that is empty", ""],
  ])("%s", async (_, sdp) => {
    const reply = await post(sdp, offer)
    expect(reply.status).toBe(400)
    expect(((await reply.json()) as Frame).detail).toMatch(/^sdp: /)
  })

  it("of another content type, too large, or with unknown parts", async () => {
    expect((await post("{}", { "content-type": "application/json" })).status).toBe(400)
    expect((await post("v".repeat(100_000), offer)).status).toBe(413)
    const form = new FormData()
    form.set("sdp", browserOffer)
    form.set("other", "x")
    expect((await post(form)).status).toBe(400)
  })

  it("without a credential, and with money that is not there", async () => {
    const anonymous = await node.fetch("/v1/realtime/calls", {
      method: "POST",
      headers: offer,
      body: browserOffer,
    })
    expect(anonymous.status).toBe(401)
    const broke = await post(browserOffer, { ...offer, authorization: `Bearer ${node.keys.broke}` })
    expect(broke.status).toBe(402)
  })
})

it("a node that takes no calls says so", async () => {
  const off = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(off, "listener", "fake", "fake-voice")
  const reply = await off.fetch("/v1/realtime/calls", {
    method: "POST",
    headers: { authorization: `Bearer ${off.keys.dev}`, ...offer },
    body: browserOffer,
  })
  expect(reply.status).toBe(404)
  expect(((await reply.json()) as Frame).detail).toContain("takes no calls")
  await off.stop()
})
