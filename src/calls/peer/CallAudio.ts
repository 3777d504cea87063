// The audio of one call in both directions, with the reports that the two sides send each other: what has arrived and when, from which follow
// the round trip and how much redundancy is worth sending.
import { makeOpusDecoder, makeOpusEncoder } from "#audio/codecs/OpusCodec.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { type ReportBlock, readReports, sentTimeOf } from "#domain/calls/Rtcp.ts"
import { isRtcp } from "#domain/calls/Rtp.ts"
import { IncomingAudio, type IncomingTerms } from "./IncomingAudio.ts"
import { OutgoingAudio, outgoingTerms } from "./OutgoingAudio.ts"

/** How often a report is sent, in packets: once a second. */
const packetsPerReport = 50

export class CallAudio {
  readonly incoming: IncomingAudio
  readonly outgoing: OutgoingAudio
  #packets = 0

  private constructor(incoming: IncomingAudio, outgoing: OutgoingAudio) {
    this.incoming = incoming
    this.outgoing = outgoing
  }

  /** Fails where no memory is left for another encoder. */
  static async make(terms: IncomingTerms): Promise<CallAudio> {
    const encoder = await makeOpusEncoder(outgoingTerms)
    const decoder = await makeOpusDecoder(speechRateHz)
    return new CallAudio(new IncomingAudio(terms, decoder), new OutgoingAudio(terms.payloadType, encoder))
  }

  /** Takes a packet of the other side, RTP or RTCP. @returns what it reports of this side's audio */
  take(bytes: Uint8Array): ReadonlyArray<ReportBlock> {
    if (!isRtcp(bytes)) {
      this.incoming.take(bytes)
      return []
    }
    const sentTime = sentTimeOf(bytes)
    if (sentTime !== undefined) this.incoming.reported(sentTime)
    const blocks = readReports(bytes).filter(({ ssrc }) => ssrc === this.outgoing.ssrc)
    for (const { lost } of blocks) this.outgoing.expectLoss(lost)
    return blocks
  }

  /** What is sent every 20 ms: a packet, and a report where one is due. */
  due(): ReadonlyArray<Uint8Array> {
    const packet = this.outgoing.due()
    if (packet === undefined) return []
    if (this.#packets++ % packetsPerReport > 0) return [packet]
    return [packet, this.outgoing.report(Date.now(), this.incoming.report())]
  }

  /** What is sent as soon as more speech has come. */
  early(): ReadonlyArray<Uint8Array> {
    return this.outgoing.begins ? [this.outgoing.early()] : []
  }

  close(): void {
    this.incoming.close()
    this.outgoing.close()
  }
}
