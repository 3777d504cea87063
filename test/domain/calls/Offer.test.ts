// Offers of calls: what is left of them, and what is refused.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { maxOfferLines, type Offer, readOffer } from "#domain/calls/Offer.ts"
import { browserOffer } from "../../support/wire/BrowserOffer.ts"

const maxMessage = 1_000_000
const read = (sdp: string) => readOffer(sdp, maxMessage)
const problemOf = (sdp: string): string => {
  const found = read(sdp)
  return "problem" in found ? found.problem : "none"
}
const replaced = (from: string | RegExp, to: string) => problemOf(browserOffer.replace(from, to))

describe("an offer of a browser", () => {
  const offer = read(browserOffer) as Offer

  it("is reduced to Opus and a data channel", () => {
    expect(offer.payloadType).toBe(111)
    expect(offer.ssrc).toBe(3_735_928_559)
    expect(offer.sdp.split("\r\n")).toEqual([
      "v=0",
      "o=- 1 1 IN IP4 0.0.0.0",
      "s=-",
      "t=0 0",
      "a=group:BUNDLE 0 1",
      "a=ice-ufrag:abcd",
      "a=ice-pwd:abcdefghijklmnopqrstuvwx",
      `a=fingerprint:sha-256 ${Array(32).fill("AB").join(":")}`,
      "a=setup:actpass",
      "m=audio 9 UDP/TLS/RTP/SAVPF 111",
      "c=IN IP4 0.0.0.0",
      "a=mid:0",
      "a=sendrecv",
      "a=rtcp-mux",
      "a=rtpmap:111 opus/48000/2",
      "a=fmtp:111 minptime=10;useinbandfec=1",
      "a=ssrc:3735928559 cname:caller",
      "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
      "c=IN IP4 0.0.0.0",
      "a=mid:1",
      "a=sendrecv",
      "a=sctp-port:5000",
      "a=max-message-size:1000000",
      "",
    ])
  })

  it("loses its candidates, which would be resolved and probed", () => {
    const candidates = [
      "a=candidate:1 1 udp 2122260223 internal.example 53 typ host",
      "a=candidate:2 1 udp 2122260223 169.254.169.254 80 typ host",
      "a=end-of-candidates",
    ].join("\r\n")
    const given = read(browserOffer.replace("a=mid:0", `a=mid:0\r\n${candidates}`)) as Offer
    expect(given.sdp).toBe(offer.sdp)
  })

  it("is the same again when it is reduced twice", () => {
    expect((read(offer.sdp) as Offer).sdp).toBe(offer.sdp)
  })
})

describe("an offer is refused", () => {
  it.each([
    [
      "without audio",
      browserOffer.replace(/m=audio[\s\S]*?(?=m=application)/, ""),
      "must have an audio section",
    ],
    ["without a data channel", browserOffer.replace(/m=application[\s\S]*/, ""), "must have a data channel"],
    [
      "with video",
      `${browserOffer}m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\n`,
      "must have no video section",
    ],
    [
      "with two audio sections",
      `${browserOffer}m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:2\r\n`,
      "one audio section",
    ],
    ["with other codecs only", browserOffer.replace("opus/48000/2", "PCMU/8000"), "must offer Opus"],
    ["that is no SDP", "hello", "must be a session description"],
    ["that is empty", "", "must be a session description"],
    ["with a line that is none", browserOffer.replace("a=mid:0", "a mid"), "has a line that is no SDP"],
    [
      "with control characters",
      browserOffer.replace("a=mid:0", "a=mid:0\u0000"),
      "has a line that is no SDP",
    ],
    [
      "of too many lines",
      `${browserOffer}${"a=x\r\n".repeat(maxOfferLines)}`,
      `at most ${maxOfferLines} lines`,
    ],
    ["that is too long", `v=0\r\n${"a".repeat(40_000)}`, "at most 32768 characters"],
  ])("%s", (_, sdp, problem) => {
    expect(problemOf(sdp)).toContain(problem)
  })

  it("for its transport", () => {
    expect(replaced(/a=fingerprint:.*\r\n/g, "")).toContain("a=fingerprint")
    expect(replaced(/sha-256 (?:AB:){31}AB/, "sha-1 AB:AB")).toContain("a=fingerprint")
    expect(replaced("a=ice-ufrag:abcd", "a=ice-ufrag:a b")).toContain("a=ice-ufrag")
    expect(
      replaced(/(a=ice-pwd:.*\r\n)(?=[\s\S]*m=application)/, "a=ice-pwd:otherotherotherotherother\r\n"),
    ).toContain("the same a=ice-pwd")
    expect(replaced("a=mid:1", "a=mid:0")).toContain("a different a=mid")
    expect(replaced("a=rtcp-mux\r\n", "")).toContain("a=rtcp-mux")
  })
})

it("whatever is changed, what is left has only lines that this node writes", () => {
  const lines = browserOffer.split("\r\n")
  const change = fc.record({
    at: fc.nat({ max: lines.length - 1 }),
    to: fc.oneof(
      fc.string(),
      fc.constantFrom(...lines),
      fc.constant("a=candidate:1 1 udp 1 evil.example 1 typ host"),
    ),
  })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      const changed = [...lines]
      for (const { at, to } of changes) changed[at] = to
      const found = read(changed.join("\r\n"))
      if ("problem" in found) {
        expect(found.problem).toMatch(/^(must|has) /)
        return
      }
      expect(found.sdp).not.toContain("candidate")
      expect(found.sdp.split("\r\n").length).toBeLessThanOrEqual(25)
      expect(found.sdp.length).toBeLessThan(2_000)
    }),
  )
})
