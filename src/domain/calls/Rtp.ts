// RTP packets (RFC 3550 5.1): a header and one frame of audio. Pure.

/** Hz: the clock of RTP timestamps of Opus, whatever the sampling rate (RFC 7587). */
export const rtpRateHz = 48_000

interface RtpPacket {
  readonly payloadType: number
  /** On the first packet after a silence. */
  readonly marker: boolean
  /** 16 bits. */
  readonly sequence: number
  /** 32 bits, of the clock `rtpRateHz`. */
  readonly timestamp: number
  readonly ssrc: number
  readonly payload: Uint8Array
}

const headerBytes = 12

/** Whether a packet of the same stream is RTCP: its second byte is one of 192 to 223 (RFC 5761 4). */
export const isRtcp = (bytes: Uint8Array): boolean => {
  const type = bytes[1] ?? 0
  return type >= 192 && type <= 223
}

/** Undefined for what is no RTP packet. */
export const parseRtp = (bytes: Uint8Array): RtpPacket | undefined => {
  if (bytes.length < headerBytes) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const first = bytes[0]!
  const second = bytes[1]!
  if (first >> 6 !== 2) return undefined
  let start = headerBytes + 4 * (first & 0x0f)
  if ((first & 0x10) !== 0) {
    if (start + 4 > bytes.length) return undefined
    start += 4 + 4 * view.getUint16(start + 2)
  }
  const padding = (first & 0x20) === 0 ? 0 : bytes.at(-1)!
  if ((first & 0x20) !== 0 && padding === 0) return undefined
  const end = bytes.length - padding
  if (start > end) return undefined
  return {
    payloadType: second & 0x7f,
    marker: (second & 0x80) !== 0,
    sequence: view.getUint16(2),
    timestamp: view.getUint32(4),
    ssrc: view.getUint32(8),
    payload: bytes.subarray(start, end),
  }
}

export const writeRtp = ({
  marker,
  payload,
  payloadType,
  sequence,
  ssrc,
  timestamp,
}: RtpPacket): Uint8Array => {
  const bytes = new Uint8Array(headerBytes + payload.length)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, 0x80)
  view.setUint8(1, (marker ? 0x80 : 0) | payloadType)
  view.setUint16(2, sequence & 0xffff)
  view.setUint32(4, timestamp >>> 0)
  view.setUint32(8, ssrc)
  bytes.set(payload, headerBytes)
  return bytes
}
