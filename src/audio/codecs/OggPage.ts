// One page of an Ogg stream (RFC 3533) as bytes. Pure.

/** Header type flags, RFC 3533 section 6. */
export const OggFlag = { none: 0, beginOfStream: 2, endOfStream: 4 } as const

/** Bytes before the segment table. */
const fixedHeaderBytes = 27
/** A packet is cut into segments of 255 bytes; a shorter one (maybe empty) ends it. */
const segmentBytes = 255
const maxSegments = 255

interface OggPage {
  readonly flags: number
  /** The granule position. Its meaning depends on the codec; for Opus it counts samples at 48 kHz. */
  readonly granule: bigint
  readonly serial: number
  readonly sequence: number
  /** Whole packets; this writer never continues one on the next page. */
  readonly packets: ReadonlyArray<Uint8Array>
}

/** CRC-32 with polynomial 0x04c11db7, not reflected, start and end 0: Ogg's variant. */
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let r = byte << 24
  for (let bit = 0; bit < 8; bit++) r = r & 0x8000_0000 ? (r << 1) ^ 0x04c1_1db7 : r << 1
  return r >>> 0
})

export const oggCrc = (bytes: Uint8Array): number => {
  let crc = 0
  for (let i = 0; i < bytes.length; i++) crc = (crc << 8) ^ crcTable[((crc >>> 24) ^ bytes[i]!) & 0xff]!
  return crc >>> 0
}

/** @throws RangeError if the packets do not fit one page, which is a bug of the caller */
export const oggPage = (page: OggPage): Uint8Array => {
  const lacing: Array<number> = []
  let bodyBytes = 0
  for (const packet of page.packets) {
    for (let left = packet.length; left >= segmentBytes; left -= segmentBytes) lacing.push(segmentBytes)
    lacing.push(packet.length % segmentBytes)
    bodyBytes += packet.length
  }
  if (lacing.length > maxSegments)
    throw new RangeError(`an Ogg page holds 255 segments, not ${lacing.length}`)

  const bytes = new Uint8Array(fixedHeaderBytes + lacing.length + bodyBytes)
  const view = new DataView(bytes.buffer)
  bytes.set([0x4f, 0x67, 0x67, 0x53, 0, page.flags]) // "OggS", version 0
  view.setBigInt64(6, page.granule, true)
  view.setUint32(14, page.serial, true)
  view.setUint32(18, page.sequence, true)
  bytes[26] = lacing.length
  bytes.set(lacing, fixedHeaderBytes)
  let at = fixedHeaderBytes + lacing.length
  for (const packet of page.packets) {
    bytes.set(packet, at)
    at += packet.length
  }
  // The checksum covers the page with its own field zero, which it still is.
  view.setUint32(22, oggCrc(bytes), true)
  return bytes
}
