// The answer of a call: its candidates are the node's, and its audio belongs to a stream.
import { expect, it } from "@effect/vitest"
import { finishedAnswer } from "#domain/calls/AnswerSdp.ts"

const library = [
  "v=0",
  "o=rtc 1 0 IN IP4 127.0.0.1",
  "s=-",
  "t=0 0",
  "a=group:BUNDLE 0 1",
  "a=msid-semantic:WMS *",
  "a=ice-ufrag:wxyz",
  "m=audio 40100 UDP/TLS/RTP/SAVPF 111",
  "c=IN IP4 172.17.0.2",
  "a=mid:0",
  "a=msid:- copied",
  "a=ssrc:1 cname:caller",
  "a=candidate:1 1 UDP 2122317823 172.17.0.2 40100 typ host",
  "a=end-of-candidates",
  "m=application 40100 UDP/DTLS/SCTP webrtc-datachannel",
  "c=IN IP4 172.17.0.2",
  "a=mid:1",
  "",
].join("\r\n")

it("names the stream and source of the audio, and the addresses of the node", () => {
  const addresses = ["203.0.113.7", "2001:db8::7"]
  expect(finishedAnswer(library, { ssrc: 77, addresses, port: 40_100 }).split("\r\n")).toEqual([
    "v=0",
    "o=rtc 1 0 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    "a=group:BUNDLE 0 1",
    "a=ice-ufrag:wxyz",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111",
    "c=IN IP4 172.17.0.2",
    "a=mid:0",
    "a=msid:edgewise answer",
    "a=ssrc:77 cname:edgewise",
    "a=ssrc:77 msid:edgewise answer",
    "a=candidate:1 1 UDP 2122317823 203.0.113.7 40100 typ host",
    "a=candidate:2 1 UDP 2122317822 2001:db8::7 40100 typ host",
    "a=end-of-candidates",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 172.17.0.2",
    "a=mid:1",
    "",
  ])
})
