// The audio of one caller: RTP packets in, samples out, in order and in the time of their timestamps.
import { makeOpusDecoder } from "#audio/codecs/OpusCodec.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { JitterBuffer } from "#domain/calls/JitterBuffer.ts"
import { parseRtp, rtpRateHz } from "#domain/calls/Rtp.ts"

/** Samples of the RTP clock for each sample that comes out. */
const perSample = rtpRateHz / speechRateHz

/** A caller may send audio so much faster than it lasts, seconds: what a stalled network delivers at once. A guess. Beyond it packets are dropped. */
const mostAheadSeconds = 5

interface IncomingTerms {
  readonly payloadType: number
  /** The source that the offer names; undefined: that of the first packet. */
  readonly ssrc: number | undefined
  readonly heard: (samples: Int16Array) => void
}

export class IncomingAudio {
  readonly #terms: IncomingTerms
  #ssrc: number | undefined
  readonly #buffer = new JitterBuffer()
  readonly #decoder = makeOpusDecoder(speechRateHz)
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Packets of other payload types or sources, or that cannot be decoded. */
  #strange = 0
  #beganMs: number | undefined
  #heardSamples = 0

  constructor(terms: IncomingTerms) {
    this.#terms = terms
    this.#ssrc = terms.ssrc
  }

  get received(): number {
    return this.#buffer.received
  }

  get missing(): number {
    return this.#buffer.lost + this.#strange
  }

  take(bytes: Uint8Array): void {
    const packet = parseRtp(bytes)
    if (packet === undefined || packet.payloadType !== this.#terms.payloadType) {
      this.#strange++
      return
    }
    this.#ssrc ??= packet.ssrc
    if (packet.ssrc !== this.#ssrc) {
      this.#strange++
      return
    }
    const nowMs = performance.now()
    this.#beganMs ??= nowMs
    if (this.#heardSamples / speechRateHz - (nowMs - this.#beganMs) / 1000 > mostAheadSeconds) {
      this.#strange++
      return
    }
    this.#buffer.push(packet, nowMs)
    this.#hear()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#decoder.close()
  }

  readonly #hear = (): void => {
    if (this.#isClosed) return
    for (const heard of this.#buffer.take(performance.now())) {
      const samples =
        heard.is === "gap"
          ? new Int16Array(Math.round(heard.samples / perSample))
          : this.#decoder.decode(heard.payload)
      if (samples === undefined) {
        this.#strange++
        continue
      }
      this.#heardSamples += samples.length
      this.#terms.heard(samples)
    }
    clearTimeout(this.#timer)
    const leftMs = this.#buffer.leftMs(performance.now())
    if (leftMs !== undefined) this.#timer = setTimeout(this.#hear, Math.ceil(leftMs) + 1)
  }
}
