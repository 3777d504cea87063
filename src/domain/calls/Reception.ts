// What has arrived of a source, as its sender is told (RFC 3550 6.4.1, A.3 and A.8): a sender that learns of losses adds redundancy to its packets.
// Pure; the caller passes the time.
import type { ReportBlock } from "./Rtcp.ts"
import { rtpRateHz } from "./Rtp.ts"

/** A jump of the sequence numbers by more is a new beginning, as in RFC 3550 A.1. */
const longestJump = 3_000

const ticksOf = (ms: number): number => Math.round((ms * rtpRateHz) / 1000)

export class Reception {
  #base = 0
  /** Undefined before the first packet. */
  #newest: number | undefined
  #received = 0
  #expectedBefore = 0
  #receivedBefore = 0
  #jitter = 0
  #transit: number | undefined
  #lastReport = 0
  #lastReportMs = 0

  took(
    { sequence, timestamp }: { readonly sequence: number; readonly timestamp: number },
    nowMs: number,
  ): void {
    const newest = this.#newest ?? sequence
    const ahead = ((sequence - newest) << 16) >> 16
    if (this.#newest === undefined || Math.abs(ahead) > longestJump) {
      this.#base = sequence
      this.#newest = sequence
      this.#received = 0
      this.#expectedBefore = 0
      this.#receivedBefore = 0
    } else if (ahead > 0) this.#newest = newest + ahead
    this.#received++
    const transit = (ticksOf(nowMs) - timestamp) | 0
    const change = this.#transit === undefined ? 0 : Math.abs((transit - this.#transit) | 0)
    this.#transit = transit
    // A pause of the sender's clock is no jitter.
    if (change < rtpRateHz) this.#jitter += (change - this.#jitter) / 16
  }

  /** The sender's own report has come, with this time in it. */
  reported(sentTime: number, nowMs: number): void {
    this.#lastReport = sentTime
    this.#lastReportMs = nowMs
  }

  /** What is reported now; the next losses count from here. Undefined before the first packet. */
  report(nowMs: number): Omit<ReportBlock, "ssrc"> | undefined {
    if (this.#newest === undefined) return undefined
    const expected = this.#newest - this.#base + 1
    const [newlyExpected, newlyReceived] = [
      expected - this.#expectedBefore,
      this.#received - this.#receivedBefore,
    ]
    this.#expectedBefore = expected
    this.#receivedBefore = this.#received
    return {
      lost: newlyExpected <= 0 ? 0 : Math.max(0, 1 - newlyReceived / newlyExpected),
      lostInAll: Math.max(0, expected - this.#received),
      newest: this.#newest >>> 0,
      jitter: Math.round(this.#jitter),
      lastReport: this.#lastReport,
      sinceLastReport:
        this.#lastReport === 0 ? 0 : Math.round(((nowMs - this.#lastReportMs) * 65_536) / 1000) >>> 0,
    }
  }
}
