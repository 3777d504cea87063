// One call in the process of calls: a connection of the WebRTC library, its data channel and its audio in both directions.
import type { DataChannel, PeerConnection, Track } from "node-datachannel"
import { finishedAnswer } from "#domain/calls/AnswerSdp.ts"
import { roundTripOf } from "#domain/calls/Rtcp.ts"
import { rtpRateHz } from "#domain/calls/Rtp.ts"
import {
  type FromPeers,
  maxMessageBytes,
  mostUnreadBytes,
  mostUnreadMessages,
  type PeerEnd,
  type PeerTerms,
  type ToPeers,
} from "../PeerWire.ts"
import type { CallAudio } from "./CallAudio.ts"
import { library } from "./Library.ts"

type Offer = Extract<ToPeers, { readonly t: "offer" }>

/** Bytes of events that wait in the data channel. Beyond it the caller does not take them in. A guess. */
const mostUnsentBytes = 4 * 1024 * 1024

/** Time until a caller is connected, milliseconds. A guess: browsers take less than a second, and a user may be asked meanwhile. */
const connectMs = 30_000

export class Peer {
  readonly #id: number
  readonly #terms: PeerTerms
  readonly #tell: (message: FromPeers) => void
  readonly #onEnd: () => void
  readonly #connection: PeerConnection
  readonly #audio: CallAudio
  readonly #overdue: NodeJS.Timeout
  #channel: DataChannel | undefined
  #track: Track | undefined
  #hasEnded = false
  #isConnected = false
  #isAnswered = false
  #unreadBytes = 0
  #unreadMessages = 0

  /** @param audio closed with the call */
  constructor(
    { id }: Offer,
    audio: CallAudio,
    terms: PeerTerms,
    tell: (message: FromPeers) => void,
    onEnd: () => void,
  ) {
    this.#id = id
    this.#terms = terms
    this.#tell = tell
    this.#onEnd = onEnd
    this.#audio = audio
    this.#overdue = setTimeout(() => this.#end("failed"), connectMs)
    this.#connection = new library.PeerConnection(`call ${id}`, {
      iceServers: [],
      enableIceUdpMux: true,
      portRangeBegin: terms.port,
      portRangeEnd: terms.port,
      maxMessageSize: maxMessageBytes,
      disableAutoNegotiation: true,
      ...(terms.bindAddress === undefined ? {} : { bindAddress: terms.bindAddress }),
    })
    this.#listen()
  }

  /** Answers its offer, or refuses it and closes. */
  answer({ sdp }: Pick<Offer, "sdp">): void {
    try {
      this.#connection.setRemoteDescription(sdp, "offer")
      this.#connection.setLocalDescription("answer")
    } catch {
      // The library's text may quote the offer.
      this.#tell({ t: "refused", id: this.#id, problem: "cannot be answered" })
      this.close()
    }
  }

  #listen(): void {
    const connection = this.#connection
    connection.onGatheringStateChange((state) => {
      if (state === "complete") this.#gathered()
    })
    connection.onStateChange((state) => {
      if (state === "connected") {
        this.#isConnected = true
        clearTimeout(this.#overdue)
      }
      if (state === "failed") this.#end(this.#isConnected ? "left" : "failed")
      if (state === "closed") this.#end("left")
    })
    connection.onDataChannel((channel) => this.#open(channel))
    connection.onTrack((track) => {
      this.#track = track
      track.onMessage((bytes) => this.#received(bytes))
    })
  }

  #gathered(): void {
    if (this.#isAnswered || this.#hasEnded) return
    const sdp = this.#connection.localDescription()?.sdp
    if (sdp === undefined) return
    this.#isAnswered = true
    const { addresses, port } = this.#terms
    const finished = finishedAnswer(sdp, { ssrc: this.#audio.outgoing.ssrc, addresses, port })
    this.#tell({ t: "answer", id: this.#id, sdp: finished })
  }

  #open(channel: DataChannel): void {
    // OpenAI's clients open one, `oai-events`.
    if (this.#channel !== undefined) return channel.close()
    this.#channel = channel
    let isOpen = false
    const opened = (): void => {
      if (isOpen) return
      isOpen = true
      this.#tell({ t: "open", id: this.#id })
    }
    channel.onOpen(opened)
    channel.onClosed(() => this.#end("left"))
    channel.onMessage((message) => {
      const text = typeof message === "string" ? message : undefined
      this.#unreadMessages++
      this.#unreadBytes += text?.length ?? 0
      if (this.#unreadMessages > mostUnreadMessages || this.#unreadBytes > mostUnreadBytes)
        return this.#end("too fast")
      this.#tell({ t: "event", id: this.#id, text: text ?? "" })
    })
    if (channel.isOpen()) opened()
  }

  #received(bytes: Uint8Array): void {
    if (this.#hasEnded) return
    const nowMs = Date.now()
    for (const block of this.#audio.take(bytes)) {
      const { missing, received } = this.#audio.incoming
      const jitterMs = (block.jitter * 1000) / rtpRateHz
      const roundTripMs = roundTripOf(block, nowMs)
      const quality = { roundTripMs, jitterMs, lost: block.lost, received, missing }
      this.#tell({ t: "quality", id: this.#id, quality })
    }
  }

  /** The time of the next packet has come. */
  tick(): void {
    this.#sendAudio(() => this.#audio.due())
  }

  #sendAudio(packets: () => ReadonlyArray<Uint8Array>): void {
    const track = this.#track
    if (!this.#isConnected || track === undefined || !track.isOpen()) return
    try {
      for (const packet of packets()) track.sendMessageBinary(Buffer.from(packet))
    } catch {
      // It was closed meanwhile, which the state says.
    }
  }

  handle(message: Exclude<ToPeers, { readonly t: "offer" }>): void {
    switch (message.t) {
      case "event":
        return this.#send(message.text)
      case "speech":
        this.#audio.outgoing.push(message.samples)
        return this.#sendAudio(() => this.#audio.early())
      case "flush":
        return this.#audio.outgoing.flush()
      case "taken":
        this.#unreadBytes -= message.bytes
        this.#unreadMessages -= message.messages
        return
      case "close":
        return this.close()
    }
  }

  #send(text: string): void {
    const channel = this.#channel
    if (channel === undefined || !channel.isOpen()) return
    if (channel.bufferedAmount() > mostUnsentBytes) return this.#end("too slow")
    try {
      channel.sendMessage(text)
    } catch {
      this.#end("left")
    }
  }

  #end(why: PeerEnd): void {
    if (this.#hasEnded) return
    this.#tell({ t: "ended", id: this.#id, why })
    this.close()
  }

  close(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#overdue)
    this.#audio.close()
    this.#onEnd()
    // Not within a callback of the library.
    setImmediate(() => {
      try {
        this.#channel?.close()
        this.#connection.close()
      } catch {
        // It is closed.
      }
    })
  }
}
