// The audio of one caller: RTP packets in, samples out, in order and in the time of their timestamps. A caller that sends nothing is silent: without
// samples no silence would end its turn.
import type { OpusDecoder } from "#audio/codecs/OpusCodec.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { JitterBuffer } from "#domain/calls/JitterBuffer.ts"
import { Reception } from "#domain/calls/Reception.ts"
import type { ReportBlock } from "#domain/calls/Rtcp.ts"
import { parseRtp, rtpRateHz } from "#domain/calls/Rtp.ts"

/** Samples of the RTP clock for each sample that comes out. */
const perSample = rtpRateHz / speechRateHz

/** A caller may send audio so much faster than it lasts, seconds: what a stalled network delivers at once. A guess. Beyond it packets are dropped. */
const mostAheadSeconds = 5

/** Without packets for so long, silence is put in their place, at intervals of `fillMs`. Longer than the network of a call holds packets back. A guess. */
const absentMs = 300
const fillMs = 100

export interface IncomingTerms {
  readonly payloadType: number
  /** The source that the offer names; undefined: that of the first packet. */
  readonly ssrc: number | undefined
  readonly heard: (samples: Int16Array) => void
}

export class IncomingAudio {
  readonly #terms: IncomingTerms
  #ssrc: number | undefined
  readonly #buffer = new JitterBuffer()
  readonly #reception = new Reception()
  readonly #decoder: OpusDecoder
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Packets of other payload types or sources, or that cannot be decoded. */
  #strange = 0
  #beganMs: number | undefined
  #newestMs = 0
  /** Until when silence was put in place of packets. */
  #filledUntilMs = 0
  /** Samples of it that a gap of the timestamps has not covered yet. */
  #filledSamples = 0
  readonly #filling = setInterval(() => this.#fill(), fillMs)
  #heardSamples = 0

  constructor(terms: IncomingTerms, decoder: OpusDecoder) {
    this.#terms = terms
    this.#decoder = decoder
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
    this.#newestMs = nowMs
    this.#filledUntilMs = nowMs
    this.#reception.took(packet, nowMs)
    this.#buffer.push(packet, nowMs)
    this.#hear()
  }

  /** The caller's own report has come, with this time in it. */
  reported(sentTime: number): void {
    this.#reception.reported(sentTime, performance.now())
  }

  /** What the caller is told of its packets; undefined before the first one. */
  report(): ReportBlock | undefined {
    const block = this.#reception.report(performance.now())
    return block === undefined ? undefined : { ssrc: this.#ssrc!, ...block }
  }

  #fill(): void {
    const nowMs = performance.now()
    if (this.#beganMs === undefined || nowMs - this.#newestMs < absentMs) return
    const samples = Math.floor(((nowMs - this.#filledUntilMs) * speechRateHz) / 1000)
    this.#filledUntilMs = nowMs
    this.#filledSamples += samples
    this.#tell(new Int16Array(samples))
  }

  /** Samples of a gap that were not put in place already. */
  #gap(ticks: number): number {
    const samples = Math.round(ticks / perSample)
    const covered = Math.min(samples, this.#filledSamples)
    this.#filledSamples -= covered
    return samples - covered
  }

  #tell(samples: Int16Array): void {
    if (samples.length === 0) return
    this.#heardSamples += samples.length
    this.#terms.heard(samples)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearInterval(this.#filling)
    this.#decoder.close()
  }

  readonly #hear = (): void => {
    if (this.#isClosed) return
    const all = this.#buffer.take(performance.now())
    for (const [at, heard] of all.entries()) {
      if (heard.is === "gap") {
        const samples = this.#gap(heard.samples)
        const behind = all[at + 1]
        const next = behind?.is === "packet" ? behind.payload : undefined
        this.#tell(heard.isLoss ? this.#decoder.conceal(samples, next) : new Int16Array(samples))
        continue
      }
      this.#filledSamples = 0
      const samples = this.#decoder.decode(heard.payload)
      if (samples === undefined) this.#strange++
      else this.#tell(samples)
    }
    clearTimeout(this.#timer)
    const leftMs = this.#buffer.leftMs(performance.now())
    if (leftMs !== undefined) this.#timer = setTimeout(this.#hear, Math.ceil(leftMs) + 1)
  }
}
