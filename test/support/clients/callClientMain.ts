// The caller of CallClient, in a process of its own, because the WebRTC library must not run in two threads of one. It sends a packet of audio every
// 20 ms, speech or silence, and says what it receives.
import * as library from "node-datachannel"
import { makeOpusCodec, makeOpusDecoder } from "#audio/codecs/OpusCodec.ts"
import { isRtcp, parseRtp, writeRtp } from "#domain/calls/Rtp.ts"
import type { FromCaller, ToCaller } from "./CallClient.ts"

const rateHz = 24_000
const frameSamples = 480
const ssrc = 4_242

const tell = (message: FromCaller): void => void process.send?.(message)

const connection = new library.PeerConnection("caller", { iceServers: [], disableAutoNegotiation: true })
const encoder = makeOpusCodec({ rateHz, frameSamples, bitsPerSecond: 32_000, voip: 5 })
const decoder = makeOpusDecoder(rateHz)
const audio = new library.Audio("0", "SendRecv")
audio.addOpusCodec(111)
audio.addSSRC(ssrc, "caller")
const track = connection.addTrack(audio)
const channel = connection.createDataChannel("oai-events")

let waiting = new Int16Array(0)
let sequence = 0
let timestamp = 0
let isSending = true

track.onMessage((bytes) => {
  if (isRtcp(bytes)) return
  const packet = parseRtp(bytes)
  if (packet === undefined) return
  const samples = decoder.decode(packet.payload) ?? new Int16Array(0)
  let peak = 0
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample))
  tell({ t: "packet", sequence: packet.sequence, timestamp: packet.timestamp, marker: packet.marker, peak })
})
connection.onStateChange((state) => tell({ t: "state", state }))
channel.onOpen(() => tell({ t: "open" }))
channel.onMessage((text) => tell({ t: "event", text: String(text) }))
channel.onClosed(() => tell({ t: "closed" }))
connection.onGatheringStateChange((state) => {
  // Two of these libraries take a second to agree who begins (OpenSSL's timer): this one begins.
  const sdp = connection.localDescription()?.sdp.replaceAll("a=setup:actpass", "a=setup:active")
  if (state === "complete" && sdp !== undefined) tell({ t: "offer", sdp })
})
connection.setLocalDescription("offer")

let dueMs = performance.now()
const tick = (): void => {
  for (; dueMs <= performance.now(); dueMs += 20) {
    if (!isSending || !track.isOpen()) continue
    const frame = new Int16Array(frameSamples)
    frame.set(waiting.subarray(0, frameSamples))
    waiting = waiting.slice(frameSamples)
    const payload = encoder.encode(frame)
    const packet = writeRtp({ payloadType: 111, marker: false, sequence, timestamp, ssrc, payload })
    try {
      track.sendMessageBinary(Buffer.from(packet))
    } catch {
      // The node has closed it.
      isSending = false
    }
    sequence = (sequence + 1) & 0xffff
    timestamp = (timestamp + 960) >>> 0
  }
  setTimeout(tick, Math.max(1, dueMs - performance.now()))
}
tick()

process.on("message", (message: ToCaller) => {
  switch (message.t) {
    case "answer":
      return connection.setRemoteDescription(message.sdp, "answer")
    case "event":
      // The node may have closed it.
      return void (channel.isOpen() && channel.sendMessage(message.text))
    case "say": {
      const longer = new Int16Array(waiting.length + message.samples.length)
      longer.set(waiting)
      longer.set(message.samples, waiting.length)
      waiting = longer
      return
    }
    case "raw":
      return void track.sendMessageBinary(Buffer.from(message.bytes))
    case "close":
      isSending = false
      channel.close()
      setTimeout(() => connection.close(), 50)
  }
})
process.on("disconnect", () => process.exit(0))
