// The audio to one caller: samples wait until their time, and every 20 ms one packet leaves, with speech or with silence. A browser stretches
// what it has where packets are missing, so there is no pause in the packets, and sequence numbers never jump. The first packet of speech after
// silence does not wait for its time; the packets behind it leave at theirs, and where the speech has ended one of silence is left out for it.
import { randomInt } from "node:crypto"
import type { OpusEncoder } from "#audio/codecs/OpusCodec.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { SampleQueue } from "#domain/audio/SampleQueue.ts"
import { opusSilence } from "#domain/calls/OpusPacket.ts"
import { type ReportBlock, writeSenderReport } from "#domain/calls/Rtcp.ts"
import { rtpRateHz, writeRtp } from "#domain/calls/Rtp.ts"

export const packetMs = 20
const packetSamples = (speechRateHz * packetMs) / 1000
const packetTicks = (rtpRateHz * packetMs) / 1000

/** Bit rate of speech. OpenAI's clients get about as much. A guess. */
const bitsPerSecond = 32_000

/** Complexity of the encoder. Measured, processor time of a packet: 0.22 ms, 0.14 at 0, 0.29 at 5. */
const complexity = 3

/** Of the encoder. */
export const outgoingTerms = {
  rateHz: speechRateHz,
  frameSamples: packetSamples,
  bitsPerSecond,
  voip: complexity,
} as const

/** What is left of an expected loss after a report without one: reports are of few packets. A guess. */
const remembered = 0.8

/** Audio that may wait. The gateway sends about a second ahead. A guess. */
const mostWaiting = 30 * speechRateHz

export class OutgoingAudio {
  readonly ssrc = randomInt(1, 2 ** 32 - 1)
  readonly #payloadType: number
  readonly #encoder: OpusEncoder
  readonly #waiting = new SampleQueue()
  #sequence = randomInt(2 ** 16)
  #timestamp = randomInt(2 ** 32)
  #isSilent = true
  /** One packet has left before its time. */
  #isAhead = false
  #packets = 0
  #bytes = 0
  #expectedLoss = 0

  constructor(payloadType: number, encoder: OpusEncoder) {
    this.#payloadType = payloadType
    this.#encoder = encoder
  }

  /** Whether the next packet would be full of speech. */
  get isFull(): boolean {
    return this.#waiting.length >= packetSamples
  }

  /** Whether speech begins whose first packet may leave now. */
  get begins(): boolean {
    return this.#isSilent && !this.#isAhead && this.isFull
  }

  push(samples: Int16Array): void {
    if (this.#waiting.length + samples.length <= mostWaiting) this.#waiting.push(samples)
  }

  flush(): void {
    this.#waiting.clear()
  }

  /** The other side has lost this share of the packets lately. */
  expectLoss(share: number): void {
    this.#expectedLoss = Math.max(share, remembered * this.#expectedLoss)
    this.#encoder.expectLoss(this.#expectedLoss)
  }

  /** The packet whose time has come; undefined where it has left before. */
  due(): Uint8Array | undefined {
    if (!this.#isAhead || this.#waiting.length > 0) return this.#next()
    this.#isAhead = false
    return undefined
  }

  /** The next packet, before its time. */
  early(): Uint8Array {
    this.#isAhead = true
    return this.#next()
  }

  /** The end of speech is filled up with silence. */
  #next(): Uint8Array {
    const hasSpeech = this.#waiting.length > 0
    const payload = hasSpeech ? this.#encoder.encode(this.#waiting.take(packetSamples)) : opusSilence
    const packet = writeRtp({
      payloadType: this.#payloadType,
      marker: hasSpeech && this.#isSilent,
      sequence: this.#sequence,
      timestamp: this.#timestamp,
      ssrc: this.ssrc,
      payload,
    })
    this.#isSilent = !hasSpeech
    this.#sequence = (this.#sequence + 1) & 0xffff
    this.#timestamp = (this.#timestamp + packetTicks) >>> 0
    this.#packets++
    this.#bytes += payload.length
    return packet
  }

  /** @param received what has arrived of the other side's audio */
  report(unixMs: number, received: ReportBlock | undefined): Uint8Array {
    return writeSenderReport({
      received,
      ssrc: this.ssrc,
      unixMs,
      timestamp: this.#timestamp,
      packets: this.#packets,
      bytes: this.#bytes,
    })
  }

  close(): void {
    this.#encoder.close()
  }
}
