// The harness and `edgewise talk` over WebRTC calls: the same figures as over a WebSocket, and the same charges for the same conversation.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { closeConnections } from "#harness/client/Exchange.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import { startCaller } from "#harness/conversation/CallerProcess.ts"
import { Session, type TurnDetection } from "#harness/conversation/Session.ts"
import { TranscriptCheck } from "#harness/conversation/TranscriptCheck.ts"
import type { TransportName } from "#harness/conversation/Transport.ts"
import { runTurn } from "#harness/conversation/Turn.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { writeWav } from "../../support/audio/AudioFiles.ts"
import { voice } from "../../support/audio/Voice.ts"
import { canCall, noLibrary } from "../../support/clients/CallClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { uses } from "../../support/groups/Uses.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import {
  startNode,
  type TestNode,
  temporaryDir,
  untilIdle,
  untilLoaded,
} from "../../support/nodes/TestNode.ts"
import { freePort } from "../../support/servers/FreePort.ts"

const dir = temporaryDir()
let node: TestNode
beforeAll(async () => {
  uses("process", "a listening server")
  if (!canCall) return
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice],
    settings: { webrtcPort: String(await freePort()) },
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(async () => {
  closeConnections()
  await node?.stop()
  dir.remove()
})

const samples = bytesToS16(voice(1.3, 1, 16_000))
const clip = makeClip("clip", samples, "one two")
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
const soon = (nowMs: number) => nowMs + 100
/** A caller that gets no processor for a while is heard as silent: that must not end its turn. */
const silence = { type: "server_vad", silence_duration_ms: 3_000 } as const

const opened = async (transport: TransportName, turns: TurnDetection, key = node.keys.dev) => {
  const session = new Session({
    model: "gpt-realtime",
    transport,
    turns,
    voice: undefined,
    instructions: undefined,
    transcriptionModel: "whisper-1",
    language: undefined,
    maxTokens: 64,
    pieceMs: 20,
  })
  const target = {
    base: node.base,
    headers: { authorization: `Bearer ${key}` },
    timeoutMs: 30_000,
  }
  await session.open(target, new AbortController().signal)
  const turn = () =>
    runTurn(
      session,
      { clip, turns, pauseMs: 100, listenMs: undefined, limitMs: 60_000 },
      new TranscriptCheck(0),
      new AbortController().signal,
    )
  const end = () => session.end(new RequestFailed("unfinished", "the test is over"))
  return { session, turn, end }
}

describe("a conversation of the harness over a call", onlyWhere(canCall, noLibrary), () => {
  // In real time: a caller or a process of calls that stands still for a second loses the packets of that second.
  it("is heard, answered and interrupted, and its events are in order", async () => {
    const { end, session, turn } = await opened("webrtc", silence)
    const { figures } = await turn()
    // Of 3 s. Half, because this process may stand still before it notes the end of its speech.
    expect(figures.voice_to_voice).toBeGreaterThan(1_500)
    expect(figures.early_ends).toBe(0)
    expect(figures.audio).toBeGreaterThan(0.2)
    const content = [{ type: "input_text", text: `fake:${JSON.stringify({ tokens: 1, text: long })}` }]
    session.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } })
    session.send({ type: "response.create" })
    const isSpeaking = () => session.playback.isContinued
    await session.until(isSpeaking, Number.POSITIVE_INFINITY, "", new AbortController().signal, soon)
    const interrupting = (await turn()).figures
    expect(interrupting.interrupt_stop).toBeGreaterThanOrEqual(0)
    expect(session.orders.broken).toEqual([])
    end()
  })

  // What a call costs is in Calls.process.test.ts; two conversations in real time.
  it("costs what it costs over a WebSocket", async () => {
    const charged = async (transport: TransportName) => {
      const key = await orgWith(node, transport, 1_000_000)
      const { end, turn } = await opened(transport, silence, key)
      await turn()
      end()
      await untilIdle(node)
      const receipts = await receiptsOf(node, transport)
      return receipts.toSorted((a, b) => a.kind.localeCompare(b.kind))
    }
    const overSocket = await charged("websocket")
    const overCall = await charged("webrtc")
    const kinds = (receipts: typeof overSocket) => receipts.map(({ kind, model }) => `${kind} ${model}`)
    expect(kinds(overSocket)).toEqual(["speech fake-voice", "text fake", "transcription listener"])
    expect(kinds(overCall)).toEqual(kinds(overSocket))
    for (const [at, one] of overCall.entries()) {
      const { audioMs, inputTokens, kind, microDollars, outputTokens } = overSocket[at]!
      // Where a turn begins and ends is found in packets of 20 ms, which lie otherwise in each conversation; a caller on a busy machine pauses,
      // and its pauses are heard.
      if (kind === "transcription") {
        expect(one.audioMs).toBeGreaterThan(audioMs - 200)
        expect(one.microDollars / one.audioMs).toBeCloseTo(microDollars / audioMs, 2)
      }
      // The prompt has a word for every 100 ms of the turn.
      else if (kind === "text") expect(one.inputTokens).toBeGreaterThan(inputTokens - 3)
      else expect(one).toMatchObject({ audioMs, microDollars })
      expect(one.outputTokens).toBe(outputTokens)
    }
  })

  it("leaves no process, also where what was spoken could not be sent", async () => {
    const ended = Promise.withResolvers<void>()
    const offered = Promise.withResolvers<void>()
    const caller = startCaller(({ t }) => t === "offer" && offered.resolve(), ended.resolve)
    await offered.promise
    // No node has answered.
    for (let nth = 0; nth < 3; nth++) caller.send({ t: "spoken", samples: new Int16Array(24_000) })
    caller.send({ t: "close" })
    await ended.promise
  })

  it("fails in words where the node takes no calls", async () => {
    const off = await startNode({ models: [listener(), fakeModel, fakeVoice] })
    const ended = await edgewise(["talk", "--url", off.base, "--webrtc", wav()], {
      EDGEWISE_API_KEY: off.keys.dev,
      EDGEWISE_DATA_DIR: dir.path,
    })
    await off.stop()
    expect(ended.status).toBe(1)
    expect(ended.stderr).toMatch(/takes no calls/)
  })
})

const wav = (): string => {
  const path = join(dir.path, "said.wav")
  writeWav(path, samples, 16_000)
  return path
}

it("edgewise talk --webrtc says a file, and writes the answer", onlyWhere(canCall, noLibrary), async () => {
  const out = join(dir.path, "out.wav")
  writeFileSync(out, "")
  const ended = await edgewise(["talk", "--url", node.base, "--webrtc", "--out", out, wav()], {
    EDGEWISE_API_KEY: node.keys.dev,
    EDGEWISE_DATA_DIR: dir.path,
  })
  expect(ended, ended.stderr).toMatchObject({ status: 0, stderr: "" })
  expect(ended.stdout).toMatch(/^you {5}…\nyou {5}\w+/)
  const heard = bytesToS16(readFileSync(out).subarray(44))
  expect(heard.filter((sample) => Math.abs(sample) > 300).length).toBeGreaterThan(2_400)
})
