// The audio packets of a caller in their order. A packet that comes in order passes at once; where one is missing, those behind it wait for it,
// at most as long as packets were lately late, and then its time passes as a gap. The RTP timestamp is the clock: what comes out, packets
// and gaps, lasts as long as the timestamps say, so that positions in the audio are true whatever was lost. Pure; the caller passes the time.
import { opusSamples } from "./OpusPacket.ts"
import { rtpRateHz } from "./Rtp.ts"

/** How long packets wait for a missing one, milliseconds: first, and at most. The most is a goal; the rest are guesses. */
export const jitterWaitMs = { first: 40, least: 20, most: 60 }

/** By how much the wait grows with each packet that was given up and came, milliseconds. A guess. */
const growMs = 10

/** By how much the wait shrinks with each packet in order, milliseconds: 50 packets a second make 1 ms. */
const shrinkMs = 0.02

/** Packets that may wait. 60 ms have six of 10 ms; the rest is reserve. */
const mostWaiting = 64

/** A longer gap of timestamps is a new beginning, which takes no time. */
const longestGap = 5 * rtpRateHz

/** Packets that may be missing before those behind are a new beginning: RFC 3550 A.1 has 3,000. */
const mostMissing = 250

export type Heard =
  | { readonly is: "packet"; readonly payload: Uint8Array }
  /** Nothing was received, or sent, for so many samples of the RTP clock. */
  | { readonly is: "gap"; readonly samples: number; readonly isLoss: boolean }

interface Held {
  readonly timestamp: number
  readonly payload: Uint8Array
  readonly samples: number
  readonly atMs: number
}

/** The difference of two numbers of so many bits that wrap around. */
const apart = (a: number, b: number, bits: 16 | 32): number =>
  bits === 16 ? ((a - b) << 16) >> 16 : (a - b) | 0

export class JitterBuffer {
  /** The next sequence number to come out; undefined before the first packet. */
  #next: number | undefined
  /** The timestamp at which it is expected. */
  #clock = 0
  readonly #held = new Map<number, Held>()
  #waitMs = jitterWaitMs.first
  received = 0
  /** Packets that came twice, or too late, or are no Opus. */
  dropped = 0
  lost = 0

  /** How long a missing packet is waited for now, milliseconds. */
  get waitMs(): number {
    return this.#waitMs
  }

  push(
    {
      payload,
      sequence,
      timestamp,
    }: { readonly sequence: number; readonly timestamp: number; readonly payload: Uint8Array },
    nowMs: number,
  ): void {
    const samples = opusSamples(payload)
    if (samples === undefined) {
      this.dropped++
      return
    }
    const ahead = this.#next === undefined ? 0 : apart(sequence, this.#next, 16)
    if (this.#next === undefined || Math.abs(ahead) > mostMissing) {
      this.#held.clear()
      this.#next = sequence
      this.#clock = timestamp
    } else if (ahead < 0) {
      this.dropped++
      this.#waitMs = Math.min(jitterWaitMs.most, this.#waitMs + growMs)
      return
    }
    if (this.#held.has(sequence) || this.#held.size >= mostWaiting) {
      this.dropped++
      return
    }
    this.received++
    this.#held.set(sequence, { timestamp, payload, samples, atMs: nowMs })
  }

  /** What comes out now. */
  take(nowMs: number): ReadonlyArray<Heard> {
    const out: Array<Heard> = []
    while (this.#next !== undefined && this.#held.size > 0) {
      const next: number = this.#next
      const found = this.#held.get(next)
      if (found !== undefined) {
        this.#held.delete(next)
        this.#passTime(found.timestamp, false, out)
        out.push({ is: "packet", payload: found.payload })
        this.#clock = (found.timestamp + found.samples) >>> 0
        this.#next = (next + 1) & 0xffff
        this.#waitMs = Math.max(jitterWaitMs.least, this.#waitMs - shrinkMs)
        continue
      }
      const first = this.#first(next)
      if (nowMs - first.atMs < this.#waitMs) break
      const missing = apart(first.sequence, next, 16)
      this.lost += missing
      this.#passTime(first.timestamp, true, out)
      this.#next = first.sequence
      this.#clock = first.timestamp
    }
    return out
  }

  /** Milliseconds until something comes out without another packet; undefined: nothing waits. */
  leftMs(nowMs: number): number | undefined {
    if (this.#next === undefined || this.#held.size === 0) return undefined
    return Math.max(0, this.#first(this.#next).atMs + this.#waitMs - nowMs)
  }

  /** The packet that waits with the smallest number; of those behind it, the one that came first says since when. */
  #first(next: number): { readonly sequence: number; readonly timestamp: number; readonly atMs: number } {
    let sequence = 0
    let least = Number.POSITIVE_INFINITY
    let atMs = Number.POSITIVE_INFINITY
    let timestamp = 0
    for (const [number, held] of this.#held) {
      const ahead = apart(number, next, 16)
      if (ahead < least) {
        least = ahead
        sequence = number
        timestamp = held.timestamp
      }
      atMs = Math.min(atMs, held.atMs)
    }
    return { sequence, timestamp, atMs }
  }

  #passTime(timestamp: number, isLoss: boolean, out: Array<Heard>): void {
    const samples = apart(timestamp, this.#clock, 32)
    if (samples > 0 && samples <= longestGap) out.push({ is: "gap", samples, isLoss })
  }
}
