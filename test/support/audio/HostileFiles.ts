// Generates audio files that are expensive to decode: much audio in few bytes, false sizes, no end. Each is valid in its format,
// or nearly.
import { readFileSync } from "node:fs"
import { oggPage } from "#audio/codecs/OggPage.ts"
import { avTargets, chirp, wavBytes, writeWithAv } from "./AudioFiles.ts"

/** `head`, then `piece` repeated as often as it fits into `sizeBytes`. */
const repeated = (head: Uint8Array, piece: (index: number) => Uint8Array, sizeBytes: number): Buffer => {
  const out = Buffer.alloc(sizeBytes)
  out.set(head)
  let at = head.length
  for (let index = 0; ; index++) {
    const bytes = piece(index)
    if (at + bytes.length > sizeBytes) return out.subarray(0, at)
    out.set(bytes, at)
    at += bytes.length
  }
}

/** 20 ms of stereo silence in three bytes, as every Opus encoder writes it. */
const silentPacket = Uint8Array.of(0xf8, 0xff, 0xfe)
const packetsOfPage = 255

/** Ogg Opus silence: 5.1 s in 1,047 bytes, so 100 MB are 142 hours. */
export const silentOpus = (sizeBytes: number): Buffer => {
  const opusHead = Buffer.from("OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\0", "latin1")
  const opusTags = Buffer.from("OpusTags\0\0\0\0\0\0\0\0", "latin1")
  const page = { flags: 0, serial: 1, granule: 0n }
  const head = Buffer.concat([
    oggPage({ ...page, flags: 2, sequence: 0, packets: [opusHead] }),
    oggPage({ ...page, sequence: 1, packets: [opusTags] }),
  ])
  const packets = Array.from({ length: packetsOfPage }, () => silentPacket)
  return repeated(
    head,
    (i) => oggPage({ ...page, sequence: i + 2, granule: BigInt((i + 1) * packetsOfPage) * 960n, packets }),
    sizeBytes,
  )
}

/** CRC with the polynomial's lower bits, most significant bit first (FLAC: 8 bits 0x07, 16 bits 0x8005). */
const crcOf = (bytes: Uint8Array, bits: 8 | 16, polynomial: number): number => {
  const top = 1 << (bits - 1)
  const mask = (1 << bits) - 1
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << (bits - 8)
    for (let bit = 0; bit < 8; bit++) crc = ((crc & top) === 0 ? crc << 1 : (crc << 1) ^ polynomial) & mask
  }
  return crc
}

const flacBlock = 65_535

/** FLAC whose frames are one value each: at 48 kHz 1.4 s in 13 bytes, so 48 hours are 1.6 MB. */
export const constantFlac = (sizeBytes: number, rateHz: 16_000 | 48_000 = 48_000): Buffer => {
  const head = Buffer.alloc(42)
  head.write("fLaC\x80\0\0\x22", "latin1")
  head.writeUInt16BE(flacBlock, 8)
  head.writeUInt16BE(flacBlock, 10)
  // 20 bits rate, 3 bits channels less one, 5 bits depth less one, 36 bits of an unknown length.
  head.writeUInt32BE(((rateHz << 12) | (15 << 4)) >>> 0, 18)
  const frame = (number: number): Uint8Array => {
    // Fixed block size, given in 16 bits after the frame number; the rate, mono, 16 bits. Frame numbers have one byte and repeat.
    const start = Uint8Array.of(
      0xff,
      0xf8,
      rateHz === 16_000 ? 0x75 : 0x7a,
      0x08,
      number & 0x7f,
      (flacBlock - 1) >> 8,
      (flacBlock - 1) & 0xff,
    )
    const body = Uint8Array.of(...start, crcOf(start, 8, 0x07), 0, 0, 0)
    const crc = crcOf(body, 16, 0x8005)
    return Uint8Array.of(...body, crc >> 8, crc & 0xff)
  }
  const frames = Array.from({ length: 128 }, (_, number) => frame(number))
  return repeated(head, (i) => frames[i & 127]!, sizeBytes)
}

/** Silence in a WAV whose header declares 4 GB. */
export const boastingWav = (sizeBytes: number): Buffer => {
  const bytes = Buffer.alloc(sizeBytes)
  bytes.set(wavBytes(new Int16Array(0), 48_000, "16").subarray(0, 44))
  bytes.writeUInt32LE(0xffff_ffff, 4)
  bytes.writeUInt32LE(0xffff_ffff, 40)
  return bytes
}

/** MPEG 2 Layer III frames of 24 bytes and 24 ms, all silent: 8 kbit/s at 24 kHz, mono. */
export const tinyFramesMp3 = (frames: number): Buffer => {
  const frame = new Uint8Array(24)
  frame.set([0xff, 0xf3, 0x14, 0xc4])
  return repeated(new Uint8Array(0), () => frame, 24 * frames)
}

/** An endless WebM: its head, and a cluster to repeat after it. Writes a temporary file to `path`. */
export const endlessWebm = (path: string): { readonly head: Buffer; readonly cluster: Buffer } => {
  writeWithAv(path, chirp(48_000, 48_000), 48_000, avTargets.webm)
  const whole = readFileSync(path)
  const segment = whole.indexOf(Buffer.from("18538067", "hex"))
  const start = whole.indexOf(Buffer.from("1f43b675", "hex"))
  const cues = whole.indexOf(Buffer.from("1c53bb6b", "hex"), start)
  const head = Buffer.from(whole.subarray(0, start))
  // A size of eight bytes with all bits set means unknown.
  head.set([0x01, 255, 255, 255, 255, 255, 255, 255], segment + 4)
  return { head, cluster: Buffer.from(whole.subarray(start, cues < 0 ? undefined : cues)) }
}

/** A seeded generator of pseudo-random numbers below a bound (Park and Miller). */
export const randomsFrom = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state * 48_271) % 0x7fff_ffff
    return state % below
  }
}

/** Changes some bytes, half of them in the headers; sometimes removes or doubles a piece, or cuts off the end. */
export const mutated = (whole: Uint8Array, random: (below: number) => number): Buffer => {
  let bytes = Buffer.from(whole)
  for (let edits = 1 + random(8); edits > 0; edits--) {
    bytes[random(random(2) === 0 ? Math.min(200, bytes.length) : bytes.length)] = random(256)
  }
  const cut = random(bytes.length)
  const piece = bytes.subarray(cut, cut + random(2_000))
  const kind = random(8)
  if (kind === 0) bytes = bytes.subarray(0, cut)
  else if (kind === 1) bytes = Buffer.concat([bytes.subarray(0, cut), piece, bytes.subarray(cut)])
  else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, cut), bytes.subarray(cut + piece.length)])
  return bytes
}
