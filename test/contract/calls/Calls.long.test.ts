// Calls for longer: callers that vanish, many interruptions, lost and reordered packets, and strangers that send offers and packets.
import { createSocket } from "node:dgram"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { CallClient, canCall, noLibrary } from "../../support/clients/CallClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { uses } from "../../support/groups/Uses.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { childrenRunning } from "../../support/process/ChildProcesses.ts"
import { freePort } from "../../support/servers/FreePort.ts"
import { startLossyRelay } from "../../support/servers/LossyRelay.ts"
import { browserOffer } from "../../support/wire/BrowserOffer.ts"

let node: TestNode
let port = 0
beforeAll(async () => {
  uses("process", "a listening server")
  if (!canCall) return
  port = await freePort()
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice],
    settings: { webrtcPort: String(port) },
    // Each test opens calls with the same key.
    rateLimit: 0,
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node?.stop())

const script = (steps: object) => `fake:${JSON.stringify(steps)}`
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
const loud = 500
const callProcess = () => childrenRunning("calls/peer/peerMain")[0]

const isOpen = async ({ location }: CallClient): Promise<boolean> => {
  const socket = new WebSocket(`${node.socketBase}/v1/realtime?call_id=${location.split("/").at(-1)}`, [
    "realtime",
    `openai-insecure-api-key.${node.keys.dev}`,
  ])
  const opened = await new Promise<boolean>((resolve) => {
    socket.addEventListener("open", () => resolve(true))
    socket.addEventListener("error", () => resolve(false))
  })
  socket.close()
  return opened
}

describe("a call", onlyWhere(canCall, noLibrary), () => {
  it("whose caller vanishes is over after 30 s", async () => {
    const caller = await CallClient.open(node)
    expect(await isOpen(caller)).toBe(true)
    const killedMs = performance.now()
    caller.kill()
    await eventually(async () => !(await isOpen(caller)), "the call is over")
    const seconds = (performance.now() - killedMs) / 1000
    console.log(`a caller that was killed: over after ${seconds.toFixed(1)} s`)
    // A machine that is busy is late.
    expect(seconds).toBeLessThan(45)
  })

  // A second each, and several on a busy machine.
  it("that is interrupted again and again keeps what was heard", async () => {
    const caller = await CallClient.open(node)
    caller.event({
      type: "session.update",
      session: { type: "realtime", audio: { input: { turn_detection: null } } },
    })
    await caller.nth("session.updated")
    const differences: Array<number> = []
    for (let nth = 1; nth <= 200; nth++) {
      const before = caller.packets.length
      caller.ask(script({ tokens: 1, text: long }))
      const wanted = 5 + Math.floor(Math.random() * 40)
      const spoken = () => caller.packets.slice(before).filter(({ peak }) => peak > loud).length
      await eventually(() => spoken() > wanted, "it speaks")
      caller.event({ type: "response.cancel" })
      caller.event({ type: "output_audio_buffer.clear" })
      const truncated = await caller.nth("conversation.item.truncated", nth)
      await caller.nth("response.done", nth)
      await new Promise((resolve) => setTimeout(resolve, 60))
      // All that was sent was received; what the node takes for heard is less by half of the round trip and the buffer of a browser.
      differences.push(spoken() * 20 - Number(truncated.audio_end_ms))
    }
    const sorted = differences.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!
    console.log(
      `received and not counted as heard, ms: least ${at(0)}, p5 ${at(0.05)}, p50 ${at(0.5)}, p95 ${at(0.95)}, most ${at(1)}`,
    )
    // A word of this voice lasts 300 ms and more; the buffer is taken as 55 ms, and the way as 15 until it is measured. Below it is the median,
    // because an answer is off by as long as the caller's process stands still, which on a busy machine happens to many.
    expect(at(0.5)).toBeGreaterThan(-40)
    expect(at(0.95)).toBeLessThan(300)
    caller.close()
  })
})

describe("strangers", onlyWhere(canCall, noLibrary), () => {
  it("send mutated offers: each is answered, and the process of calls goes on", async () => {
    const lines = browserOffer.split("\r\n")
    const pid = callProcess()
    const statuses = new Map<number, number>()
    const random = fc.sample(
      fc.array(
        fc.record({
          at: fc.nat({ max: lines.length - 1 }),
          to: fc.oneof(
            fc.string(),
            fc.constantFrom(...lines),
            fc.constantFrom("", "a=setup:active", "a=mid:9"),
          ),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      5_000,
    )
    const send = async (changes: (typeof random)[number]): Promise<void> => {
      const changed = [...lines]
      for (const { at, to } of changes) changed[at] = to
      const reply = await node.fetch("/v1/realtime/calls", {
        method: "POST",
        headers: { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/sdp" },
        body: changed.join("\r\n"),
      })
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1)
      await reply.arrayBuffer()
      const location = reply.headers.get("location")
      if (location === null) return
      const headers = { authorization: `Bearer ${node.keys.dev}` }
      await node.fetch(`${location}/hangup`, { method: "POST", headers })
    }
    for (let at = 0; at < random.length; at += 4) await Promise.all(random.slice(at, at + 4).map(send))
    console.log(`5,000 mutated offers: ${JSON.stringify(Object.fromEntries(statuses))}`)
    expect(
      Object.keys(Object.fromEntries(statuses)).filter((status) => Number(status) >= 500 && status !== "503"),
    ).toEqual([])
    expect(callProcess()).toBe(pid)
  })

  it("send 100,000 packets to the port beside four calls, which go on", async () => {
    const callers = [
      await CallClient.open(node),
      await CallClient.open(node),
      await CallClient.open(node),
      await CallClient.open(node),
    ]
    const pid = callProcess()
    const gaps = (fromMs: number, toMs: number) => {
      const all = callers.flatMap(({ packets }) => {
        const times = packets.map(({ atMs }) => atMs).filter((atMs) => atMs >= fromMs && atMs < toMs)
        return times.slice(1).map((atMs, at) => atMs - times[at]!)
      })
      return all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.99)] ?? 0
    }
    const quietMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    const beganMs = performance.now()
    const socket = createSocket("udp4")
    for (let sent = 0; sent < 100_000; sent += 100) {
      for (let nth = 0; nth < 100; nth++) {
        const bytes = Buffer.alloc(20 + Math.floor(Math.random() * 200))
        for (let at = 0; at < bytes.length; at++) bytes[at] = Math.random() * 256
        // STUN, DTLS, RTP and noise.
        const kind = nth % 4
        if (kind === 0) Buffer.from([0, 1, 0, bytes.length - 20, 0x21, 0x12, 0xa4, 0x42]).copy(bytes)
        if (kind === 1) Buffer.from([22, 254, 253]).copy(bytes)
        if (kind === 2) bytes[0] = 0x80
        socket.send(bytes, port, "127.0.0.1")
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const endedMs = performance.now()
    socket.close()
    console.log(
      `packets to callers, p99 of their distance: ${gaps(quietMs, beganMs).toFixed(1)} ms quiet, ${gaps(beganMs, endedMs).toFixed(1)} ms in ${((endedMs - beganMs) / 1000).toFixed(1)} s of 100,000 hostile packets`,
    )
    expect(callProcess()).toBe(pid)
    for (const caller of callers) {
      caller.ask(script({ tokens: 1, text: "It is noon there." }))
      await caller.nth("output_audio_buffer.stopped")
      caller.close()
    }
  })
})

describe("a network that loses and reorders packets", onlyWhere(canCall, noLibrary), () => {
  it.each([0, 0.05, 0.1])("with a loss of %d: events come, and speech has its length", async (loss) => {
    const relay = await startLossyRelay(port, loss, 30)
    const caller = await CallClient.make()
    const reply = await caller.call(node)
    const answer = (await reply.text()).replace(` ${port} typ host`, ` ${relay.port} typ host`)
    caller.send({ t: "answer", sdp: answer })
    await caller.nth("session.created")
    caller.event({
      type: "session.update",
      session: {
        type: "realtime",
        audio: {
          input: { transcription: {}, turn_detection: { type: "server_vad", silence_duration_ms: 1_000 } },
        },
      },
    })
    await caller.nth("session.updated")
    const { bytesToS16 } = await import("#domain/audio/Audio.ts")
    const { voice } = await import("../../support/audio/Voice.ts")
    // A caller that gets no processor for a while is heard as silent, which must not end its turn: the silence is a second.
    const lengths: Array<number> = []
    for (let nth = 1; nth <= 5; nth++) {
      caller.send({ t: "say", samples: bytesToS16(voice(1.3)) })
      const started = await caller.nth("input_audio_buffer.speech_started", nth)
      const stopped = await caller.nth("input_audio_buffer.speech_stopped", nth)
      lengths.push(Number(stopped.audio_end_ms) - Number(started.audio_start_ms))
      // The made-up voices of both sides are so alike that one may be taken for the echo of the other, up to 1.1 s after it was played.
      await caller.nth("output_audio_buffer.stopped", nth)
      await new Promise((resolve) => setTimeout(resolve, 1_200))
    }
    console.log(`loss ${loss}, jitter 30 ms: turns of ${lengths.join(", ")} ms`)
    for (const length of lengths) expect(length).toBeGreaterThan(1_600)
    caller.close()
    relay.stop()
  })
})
