// RTCP packets (RFC 3550 6): what a caller reports of the audio that it receives, and the reports of this node. A report of the sender
// carries its time; the caller's next report repeats it, which gives the round trip. Pure.

/** What one side reports of a source of the other. */
export interface ReportBlock {
  /** The source that it is about. */
  readonly ssrc: number
  /** Packets lost since the report before, as a share of those expected. */
  readonly lost: number
  /** Packets lost since the beginning. */
  readonly lostInAll: number
  /** The newest sequence number; its upper 16 bits count how often the numbers began again. */
  readonly newest: number
  /** How much the distance of packets varies, in units of the RTP clock. */
  readonly jitter: number
  /** The middle 32 bits of the time in the last sender report that it got; 0: it got none. */
  readonly lastReport: number
  /** Since then, in units of 1/65,536 s. */
  readonly sinceLastReport: number
}

const senderReport = 200
const receiverReport = 201
const description = 202
const blockBytes = 24

/** All report blocks of a compound packet. What cannot be read ends it. */
export const readReports = (bytes: Uint8Array): ReadonlyArray<ReportBlock> => {
  const blocks: Array<ReportBlock> = []
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at + 8 <= bytes.length; ) {
    const first = view.getUint8(at)
    const type = view.getUint8(at + 1)
    const end = at + 4 * (view.getUint16(at + 2) + 1)
    if (first >> 6 !== 2 || end > bytes.length) return blocks
    const begin = type === senderReport ? at + 28 : type === receiverReport ? at + 8 : end
    const count = first & 0x1f
    for (let nth = 0; nth < count; nth++) {
      const block = begin + blockBytes * nth
      if (block + blockBytes > end) break
      blocks.push({
        ssrc: view.getUint32(block),
        lost: view.getUint8(block + 4) / 256,
        lostInAll: view.getUint32(block + 4) & 0xff_ffff,
        newest: view.getUint32(block + 8),
        jitter: view.getUint32(block + 12),
        lastReport: view.getUint32(block + 16),
        sinceLastReport: view.getUint32(block + 20),
      })
    }
    at = end
  }
  return blocks
}

/** The middle 32 bits of the time in a sender report, with which the packet begins; undefined without one. Reports of receivers repeat it. */
export const sentTimeOf = (bytes: Uint8Array): number | undefined => {
  if (bytes.length < 28 || bytes[1] !== senderReport) return undefined
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(10)
}

/** A time in the form of sender reports: seconds since 1900 and 1/2^32 of a second. */
const ntpOf = (unixMs: number): readonly [seconds: number, fraction: number] => {
  const seconds = Math.floor(unixMs / 1000)
  const fraction = Math.floor(((unixMs - seconds * 1000) / 1000) * 2 ** 32)
  return [(seconds + 2_208_988_800) >>> 0, fraction >>> 0]
}

/** The middle 32 bits of a time, as reports repeat them. */
export const shortNtp = (unixMs: number): number => {
  const [seconds, fraction] = ntpOf(unixMs)
  return (((seconds & 0xffff) << 16) | (fraction >>> 16)) >>> 0
}

/** Milliseconds from this node to the caller and back, by a report that arrives at `unixMs`; undefined where it repeats no time. */
export const roundTripOf = (
  { lastReport, sinceLastReport }: ReportBlock,
  unixMs: number,
): number | undefined => {
  if (lastReport === 0) return undefined
  const units = (shortNtp(unixMs) - lastReport - sinceLastReport) | 0
  // A clock that was set, or a caller that reports what is not so.
  return units < 0 || units > 60 * 65_536 ? undefined : (units * 1000) / 65_536
}

interface SentAudio {
  readonly ssrc: number
  readonly unixMs: number
  /** The RTP timestamp of that moment. */
  readonly timestamp: number
  readonly packets: number
  /** Of payloads. */
  readonly bytes: number
  /** What has arrived of the other side's audio; undefined before its first packet. */
  readonly received: ReportBlock | undefined
}

/** A sender report with the description of its source. */
export const writeSenderReport = ({
  bytes,
  packets,
  received,
  ssrc,
  timestamp,
  unixMs,
}: SentAudio): Uint8Array => {
  const name = new TextEncoder().encode("edgewise")
  // One chunk: source, item CNAME, and at least one zero byte up to whole words.
  const chunk = 4 * Math.ceil((4 + 2 + name.length + 1) / 4)
  const blocks = received === undefined ? 0 : 1
  const described = 28 + blocks * blockBytes
  const out = new Uint8Array(described + 4 + chunk)
  const view = new DataView(out.buffer)
  const [seconds, fraction] = ntpOf(unixMs)
  view.setUint8(0, 0x80 | blocks)
  view.setUint8(1, senderReport)
  view.setUint16(2, described / 4 - 1)
  view.setUint32(4, ssrc)
  view.setUint32(8, seconds)
  view.setUint32(12, fraction)
  view.setUint32(16, timestamp >>> 0)
  view.setUint32(20, packets >>> 0)
  view.setUint32(24, bytes >>> 0)
  if (received !== undefined) {
    view.setUint32(28, received.ssrc)
    view.setUint32(32, Math.min(0xff_ffff, received.lostInAll))
    view.setUint8(32, Math.min(255, Math.floor(256 * received.lost)))
    view.setUint32(36, received.newest)
    view.setUint32(40, received.jitter)
    view.setUint32(44, received.lastReport)
    view.setUint32(48, received.sinceLastReport)
  }
  view.setUint8(described, 0x81)
  view.setUint8(described + 1, description)
  view.setUint16(described + 2, chunk / 4)
  view.setUint32(described + 4, ssrc)
  view.setUint8(described + 8, 1)
  view.setUint8(described + 9, name.length)
  out.set(name, described + 10)
  return out
}
