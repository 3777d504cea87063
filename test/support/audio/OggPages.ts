// A strict reader of single Ogg Opus streams, written from RFC 3533 and RFC 7845 and independent of the writer. It accepts only
// well-formed streams; its errors name the first violation.
import { createDecoder } from "libopus-wasm"

interface ParsedPage {
  readonly beginOfStream: boolean
  readonly endOfStream: boolean
  readonly granule: bigint
  readonly packets: ReadonlyArray<Uint8Array>
}

interface ParsedOgg {
  readonly pages: ReadonlyArray<ParsedPage>
  /** Bytes after the last whole page: a page that was cut. */
  readonly restBytes: number
}

const crc = (page: Uint8Array): number => {
  let value = 0n
  page.forEach((byte, i) => {
    const counted = i >= 22 && i < 26 ? 0 : byte
    value ^= BigInt(counted) << 24n
    for (let bit = 0; bit < 8; bit++) {
      value = (value << 1n) & 0x1_ffff_ffffn
      if (value > 0xffff_ffffn) value ^= 0x1_04c1_1db7n
    }
  })
  return Number(value)
}

/** @throws Error naming the first rule that is broken */
export const parseOgg = (bytes: Uint8Array): ParsedOgg => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const pages: Array<ParsedPage> = []
  let serial: number | undefined
  let lastGranule = 0n
  let at = 0
  while (at < bytes.length) {
    const fail = (what: string): never => {
      throw new Error(`page ${pages.length} at byte ${at}: ${what}`)
    }
    if (bytes.length - at < 27) break
    const segments = bytes[at + 26]!
    if (bytes.length - at < 27 + segments) break
    const lacing = bytes.subarray(at + 27, at + 27 + segments)
    const end = at + 27 + segments + lacing.reduce((sum, size) => sum + size, 0)
    if (end > bytes.length) break

    if (Buffer.from(bytes.subarray(at, at + 4)).toString("latin1") !== "OggS") fail("no capture pattern")
    if (bytes[at + 4] !== 0) fail("unknown version")
    const flags = bytes[at + 5]!
    if ((flags & ~6) !== 0) fail("continued packet or unknown flag")
    if (pages.at(-1)?.endOfStream === true) fail("a page after the end of the stream")
    if (((flags & 2) !== 0) !== (pages.length === 0)) fail("begin-of-stream flag in the wrong place")
    serial ??= view.getUint32(at + 14, true)
    if (view.getUint32(at + 14, true) !== serial) fail("another serial number")
    if (view.getUint32(at + 18, true) !== pages.length) fail("page sequence number")
    if (view.getUint32(at + 22, true) !== crc(bytes.subarray(at, end))) fail("checksum")
    const granule = view.getBigInt64(at + 6, true)
    if (granule < lastGranule) fail("granule goes backwards")
    lastGranule = granule

    const packets: Array<Uint8Array> = []
    let from = at + 27 + segments
    let size = 0
    for (const lace of lacing) {
      size += lace
      if (lace === 255) continue
      packets.push(bytes.subarray(from, from + size))
      from += size
      size = 0
    }
    if (size > 0) fail("a packet without its end")
    pages.push({ beginOfStream: (flags & 2) !== 0, endOfStream: (flags & 4) !== 0, granule, packets })
    at = end
  }
  return { pages, restBytes: bytes.length - at }
}

interface ParsedOpus {
  readonly preSkip: number
  readonly inputRateHz: number
  /** Audio packets, each 20 ms. */
  readonly packets: ReadonlyArray<Uint8Array>
  readonly endGranule: bigint
  readonly ended: boolean
}

/** The Opus stream in Ogg pages. @throws Error when the headers or the granules are wrong */
export const parseOggOpus = (bytes: Uint8Array): ParsedOpus => {
  const { pages } = parseOgg(bytes)
  const [head, tags, ...audio] = pages
  const headPacket = head?.packets[0]
  const tagsPacket = tags?.packets[0]
  if (headPacket === undefined || tagsPacket === undefined) throw new Error("no headers")
  const text = (packet: Uint8Array) => Buffer.from(packet.subarray(0, 8)).toString("latin1")
  if (text(headPacket) !== "OpusHead" || headPacket.length !== 19) throw new Error("no OpusHead")
  if (text(tagsPacket) !== "OpusTags") throw new Error("no OpusTags")
  if (head?.granule !== 0n || tags?.granule !== 0n) throw new Error("headers with a granule")
  if (head.packets.length !== 1 || tags.packets.length !== 1)
    throw new Error("more than a header on its page")
  const view = new DataView(headPacket.buffer, headPacket.byteOffset, headPacket.byteLength)
  if (headPacket[8] !== 1 || headPacket[9] !== 1 || headPacket[18] !== 0)
    throw new Error("not version 1, mono")

  let coded = 0n
  for (const [i, page] of audio.entries()) {
    if (page.packets.length === 0) throw new Error(`audio page ${i} is empty`)
    coded += 960n * BigInt(page.packets.length)
    const exact = page.endOfStream
      ? page.granule <= coded && page.granule > coded - 1920n
      : page.granule === coded
    if (!exact) throw new Error(`audio page ${i}: granule ${page.granule}, ${coded} samples coded`)
  }
  return {
    preSkip: view.getUint16(10, true),
    inputRateHz: view.getUint32(12, true),
    packets: audio.flatMap((page) => page.packets),
    endGranule: audio.at(-1)?.granule ?? 0n,
    ended: pages.at(-1)?.endOfStream === true,
  }
}

/** Of all streams, one after the other: the first milliseconds of one may have something of the one before. */
const decoder = await createDecoder({ sampleRate: 48_000, channels: 1 })

/** The audio that a player plays: 48 kHz mono, without the pre-skip, cut at the last granule. */
export const decodeOggOpus = (bytes: Uint8Array): Int16Array => {
  const stream = parseOggOpus(bytes)
  const samples = stream.packets.flatMap((packet) => [...decoder.decode(packet)])
  return Int16Array.from(samples.slice(stream.preSkip, Number(stream.endGranule)))
}
