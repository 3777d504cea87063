// Messages and signature of Twilio's Media Streams.
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import fc from "fast-check"
import { markName, playedAt, TwilioMessage } from "#domain/telephony/TwilioMessages.ts"
import { isSigned, twilioSignature } from "#domain/telephony/TwilioSignature.ts"

const accepts = Schema.is(TwilioMessage)

describe("messages", () => {
  it("are those that Twilio documents", () => {
    const streamSid = "MZXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"
    const start = {
      accountSid: "AC0",
      streamSid,
      callSid: "CA0",
      tracks: ["inbound"],
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8_000, channels: 1 },
      customParameters: { api_key: "svc_x" },
    }
    for (const message of [
      { event: "connected", protocol: "Call", version: "1.0.0" },
      { event: "start", sequenceNumber: "1", start, streamSid },
      {
        event: "media",
        sequenceNumber: "3",
        media: { track: "inbound", chunk: "1", timestamp: "5", payload: "/v8=" },
        streamSid,
      },
      { event: "mark", sequenceNumber: "4", streamSid, mark: { name: "0:2400" } },
      { event: "dtmf", streamSid, sequenceNumber: "5", dtmf: { track: "inbound_track", digit: "1" } },
      { event: "stop", sequenceNumber: "5", stop: { accountSid: "AC0", callSid: "CA0" }, streamSid },
    ])
      expect([message.event, accepts(message)]).toEqual([message.event, true])
    const wide = { ...start, mediaFormat: { ...start.mediaFormat, sampleRate: 16_000 } }
    expect(accepts({ event: "start", start: wide })).toBe(false)
    expect(accepts({ event: "media", media: { payload: "no base64!" } })).toBe(false)
    expect(accepts({ event: "dtmf", dtmf: { digit: "ab" } })).toBe(false)
  })

  it("a mark names what was played, until the next cut", () => {
    fc.assert(
      fc.property(fc.nat({ max: 1_000 }), fc.nat(), (cuts, samples) => {
        expect(playedAt(markName(cuts, samples), cuts)).toBe(samples)
        expect(playedAt(markName(cuts, samples), cuts + 1)).toBeUndefined()
      }),
    )
    for (const name of ["", "0", ":", "0:", "0:x", "x:1"]) expect(playedAt(name, 0)).toBeUndefined()
  })
})

describe("the signature", () => {
  const token = "12345"
  const signed = (address: string) => twilioSignature(token, address)

  it("is that of the address, whatever a proxy has made of its scheme", () => {
    expect(
      isSigned(
        token,
        "node.example",
        "/v1/telephony/twilio",
        signed("wss://node.example/v1/telephony/twilio"),
      ),
    ).toBe(true)
    expect(
      isSigned(
        token,
        "node.example",
        "/v1/telephony/twilio",
        signed("wss://node.example/v1/telephony/twilio/"),
      ),
    ).toBe(true)
    expect(
      isSigned(
        token,
        "node.example",
        "/v1/telephony/twilio",
        signed("https://node.example/v1/telephony/twilio"),
      ),
    ).toBe(true)
  })

  it("of another address, token or form is wrong", () => {
    expect(
      isSigned(
        token,
        "node.example",
        "/v1/telephony/twilio",
        signed("wss://other.example/v1/telephony/twilio"),
      ),
    ).toBe(false)
    expect(
      isSigned(
        token,
        "node.example",
        "/v1/telephony/twilio",
        twilioSignature("x", "wss://node.example/v1/telephony/twilio"),
      ),
    ).toBe(false)
    for (const wrong of ["", "x", "AAAA"]) expect(isSigned(token, "h", "/", wrong)).toBe(false)
  })
})
