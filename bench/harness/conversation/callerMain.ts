// The program of CallerProcess: a connection with a data channel and Opus in both directions. Its audio is that of the process of calls, from the
// other side.

import { maxMessageBytes } from "#calls/PeerWire.ts"
import { CallAudio } from "#calls/peer/CallAudio.ts"
import { library } from "#calls/peer/Library.ts"
import { packetMs } from "#calls/peer/OutgoingAudio.ts"
import { isRtcp, parseRtp } from "#domain/calls/Rtp.ts"
import type { FromCaller, ToCaller } from "./CallerProcess.ts"

/** As Chromium has it. */
const payloadType = 111

const tell = (message: FromCaller): void => void process.send?.(message, undefined, undefined, () => {})

const audio = await CallAudio.make({
  payloadType,
  ssrc: undefined,
  heard: (samples) => tell({ t: "sound", samples }),
})
const connection = new library.PeerConnection("caller", {
  iceServers: [],
  disableAutoNegotiation: true,
  maxMessageSize: maxMessageBytes,
})
const description = new library.Audio("0", "SendRecv")
description.addOpusCodec(payloadType)
description.addSSRC(audio.outgoing.ssrc, "caller")
const track = connection.addTrack(description)
const channel = connection.createDataChannel("oai-events")

track.onMessage((bytes) => {
  const packet = isRtcp(bytes) ? undefined : parseRtp(bytes)
  if (packet !== undefined) {
    const { marker, sequence, timestamp } = packet
    tell({ t: "packet", sequence, timestamp, marker })
  }
  audio.take(bytes)
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

let isOver = false
const canSend = (): boolean => !isOver && track.isOpen()
const sendNext = (): void => {
  if (!canSend()) return
  try {
    for (const packet of audio.due()) track.sendMessageBinary(Buffer.from(packet))
  } catch {
    // The node has closed it.
    isOver = true
  }
}

/** Packets leave by the clock, and not when something was spoken. */
let isPaced = true
let dueMs = performance.now()
const tick = (): void => {
  if (!isPaced) return
  for (; dueMs <= performance.now(); dueMs += packetMs) sendNext()
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
    case "say":
      return audio.outgoing.push(message.samples)
    case "spoken":
      isPaced = false
      audio.outgoing.push(message.samples)
      while (audio.outgoing.isFull && canSend()) sendNext()
      // What cannot be sent is not sent later.
      if (!canSend()) audio.outgoing.flush()
      return
    case "raw":
      return void track.sendMessageBinary(Buffer.from(message.bytes))
    case "close":
      isOver = true
      channel.close()
      setTimeout(() => connection.close(), 50)
      setTimeout(() => process.exit(0), 500)
  }
})
process.on("disconnect", () => process.exit(0))
