// Telephone calls over Twilio's Media Streams, with messages as Twilio documents them: a spoken turn is answered, an interruption keeps what the marks
// have confirmed, and what is not signed, paid or understood is refused.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import WebSocket from "ws"
import { toG711 } from "#audio/G711.ts"
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import type { TwilioReply } from "#domain/telephony/TwilioMessages.ts"
import { twilioSignature } from "#domain/telephony/TwilioSignature.ts"
import { voice } from "../../support/audio/Voice.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const token = "a-token-of-tests"
const path = "/v1/telephony/twilio"
let node: TestNode
beforeAll(async () => {
  // Its voice speaks slowly, so that there is something to interrupt.
  const conversation = { transcription: "listener", text: "fake", speech: "fake-voice" }
  const session = { audio: { output: { speed: 0.25 } } }
  const assistant = { id: "assistant", kind: "conversation", conversation: { ...conversation, session } }
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice, assistant],
    settings: { twilioToken: token },
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const streamSid = "MZ0123456789abcdef"

/** Twilio: it plays what it is sent in real time, and sends each mark back when all before it was played. */
class Telephone {
  readonly #socket: WebSocket
  close: { readonly code: number; readonly reason: string } | undefined
  status = 0
  isOpen = false
  cleared = 0
  /** Bytes of µ-law that were played. */
  played = 0
  /** It plays no more than this before a clear. */
  holdsAt = Number.POSITIVE_INFINITY
  /** Bytes that were played when the last clear came. */
  playedAtClear = 0
  #queue: Array<{ readonly bytes: number } | { readonly mark: string }> = []
  readonly #timer: NodeJS.Timeout
  #playUntilMs = 0

  constructor(signature?: string) {
    const host = new URL(node.base).host
    this.#socket = new WebSocket(`${node.socketBase}${path}`, {
      headers: { "x-twilio-signature": signature ?? twilioSignature(token, `wss://${host}${path}`) },
      rejectUnauthorized: false,
    })
    this.#socket.on("open", () => {
      this.isOpen = true
    })
    this.#socket.on("unexpected-response", (_, reply) => {
      this.status = reply.statusCode ?? 0
    })
    this.#socket.on("error", () => {})
    this.#socket.on("close", (code, reason) => {
      this.close = { code, reason: String(reason) }
    })
    this.#socket.on("message", (data) => this.#take(JSON.parse(String(data)) as typeof TwilioReply.Type))
    this.#timer = setInterval(() => this.#play(), 10)
  }

  #take(message: typeof TwilioReply.Type): void {
    expect(message.streamSid).toBe(streamSid)
    if (message.event === "media")
      this.#queue.push({ bytes: Buffer.from(message.media.payload, "base64").length })
    if (message.event === "mark") this.#queue.push({ mark: message.mark.name })
    if (message.event === "clear") {
      this.cleared++
      this.playedAtClear = this.played
      for (const one of this.#queue.splice(0)) if ("mark" in one) this.#confirm(one.mark)
    }
  }

  #confirm(name: string): void {
    this.send({ event: "mark", streamSid, mark: { name } })
  }

  #play(): void {
    const nowMs = performance.now()
    const isHeld = this.cleared === 0 && this.played >= this.holdsAt
    if (this.#queue.length === 0 || isHeld) this.#playUntilMs = nowMs
    if (isHeld) return
    while (this.#playUntilMs <= nowMs) {
      const next = this.#queue.shift()
      if (next === undefined) return
      if ("mark" in next) this.#confirm(next.mark)
      else {
        this.played += next.bytes
        this.#playUntilMs += next.bytes / 8
      }
    }
  }

  send(message: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message))
  }

  start(customParameters: Readonly<Record<string, string>>): void {
    this.send({ event: "connected", protocol: "Call", version: "1.0.0" })
    const mediaFormat = { encoding: "audio/x-mulaw", sampleRate: 8_000, channels: 1 }
    const start = {
      accountSid: "AC0",
      streamSid,
      callSid: "CA0",
      tracks: ["inbound"],
      mediaFormat,
      customParameters,
    }
    this.send({ event: "start", sequenceNumber: "1", start, streamSid })
  }

  /** Speech and a silence, in real time, in messages of 20 ms. */
  async say(seconds: number): Promise<void> {
    const samples = new Resampler(24_000, 8_000).push(bytesToS16(voice(seconds)))
    const bytes = Buffer.concat([Buffer.from(toG711(samples, "pcmu")), Buffer.alloc(12_000, 0xff)])
    for (let at = 0; at < bytes.length; at += 160) {
      const payload = bytes.subarray(at, at + 160).toString("base64")
      this.send({
        event: "media",
        sequenceNumber: "2",
        media: { track: "inbound", chunk: "1", timestamp: "0", payload },
        streamSid,
      })
      await new Promise((resolve) => setTimeout(resolve, 18))
    }
  }

  end(): void {
    clearInterval(this.#timer)
    this.#socket.close()
  }
}

const opened = async (parameters: Readonly<Record<string, string>> = {}): Promise<Telephone> => {
  const telephone = new Telephone()
  await eventually(() => telephone.isOpen, "the stream is open")
  telephone.start({ api_key: node.keys.dev, ...parameters })
  return telephone
}

describe("a telephone call", () => {
  it("is a conversation: speech is answered with speech, and speech over it clears what waits", async () => {
    const telephone = await opened({ model: "assistant", instructions: "Be brief." })
    // On a busy machine all of the answer would have been played before the speech over it is heard.
    telephone.holdsAt = 12_000
    await telephone.say(1.3)
    await eventually(() => telephone.played > 800, "the answer is played")
    const before = telephone.played
    telephone.send({
      event: "dtmf",
      streamSid,
      sequenceNumber: "9",
      dtmf: { track: "inbound_track", digit: "5" },
    })
    await telephone.say(1.3)
    await eventually(() => telephone.cleared >= 1, "the answer is cut")
    expect(telephone.close).toBeUndefined()
    // 2.4 s of speech at 8 kHz.
    expect(telephone.playedAtClear).toBeGreaterThanOrEqual(before)
    expect(telephone.playedAtClear).toBeLessThan(19_000)
    telephone.send({
      event: "stop",
      sequenceNumber: "10",
      stop: { accountSid: "AC0", callSid: "CA0" },
      streamSid,
    })
    await eventually(() => telephone.close !== undefined, "the call ends")
    telephone.end()
  })

  it.each([
    ["without a key", () => ({}), "Missing bearer token"],
    ["with a wrong key", () => ({ api_key: "svc_wrong" }), "Invalid API key"],
    ["without money", () => ({ api_key: node.keys.broke }), "Billing access denied"],
    ["with an unknown model", () => ({ api_key: node.keys.dev, model: "nothing" }), "Model not loaded"],
  ])("%s is refused", async (_, parameters, reason) => {
    const telephone = new Telephone()
    await eventually(() => telephone.isOpen, "the stream is open")
    telephone.start(parameters())
    await eventually(() => telephone.close !== undefined, "it is closed")
    expect(telephone.close?.code).toBe(1008)
    expect(telephone.close?.reason).toContain(reason)
    telephone.end()
  })

  it("with a wrong signature is refused before the handshake", async () => {
    for (const signature of [
      "",
      "wrong",
      twilioSignature("other", `wss://${new URL(node.base).host}${path}`),
    ]) {
      const telephone = new Telephone(signature)
      await eventually(() => telephone.status !== 0, "it is answered")
      expect(telephone.status).toBe(401)
      telephone.end()
    }
  })

  it("with other messages ends", async () => {
    const telephone = await opened()
    telephone.send({ event: "media", media: { payload: "no base64!" } })
    await eventually(() => telephone.close !== undefined, "it is closed")
    expect(telephone.close).toEqual({ code: 1008, reason: "unknown message" })
    telephone.end()
    const early = new Telephone()
    await eventually(() => early.isOpen, "the stream is open")
    early.send({ event: "media", media: { payload: "/v8=" } })
    await eventually(() => early.close !== undefined, "it is closed")
    expect(early.close?.code).toBe(1008)
    early.end()
  })
})
