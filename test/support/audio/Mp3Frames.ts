// A strict reader of constant-rate MP3: frame after frame from the first byte to the last, nothing between them.

const kbpsMpeg2Layer3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const ratesMpeg2 = [22_050, 24_000, 16_000]

interface Mp3Frame {
  readonly kbps: number
  readonly rateHz: number
  readonly mono: boolean
}

/** MPEG 2 Layer III frames (the rates up to 24 kHz). @throws Error at the first byte that is not a frame's */
export const mp3Frames = (bytes: Uint8Array): ReadonlyArray<Mp3Frame> => {
  const frames: Array<Mp3Frame> = []
  for (let at = 0; at < bytes.length; ) {
    const header = Buffer.from(bytes.subarray(at, at + 4))
    // Sync, MPEG 2, Layer III; with or without protection.
    if (header.length < 4 || (header.readUInt16BE(0) & 0xfffe) !== 0xfff2)
      throw new Error(`no frame at byte ${at}`)
    const kbps = kbpsMpeg2Layer3[header[2]! >> 4]
    const rateHz = ratesMpeg2[(header[2]! >> 2) & 3]
    if (!kbps || rateHz === undefined) throw new Error(`bad header at byte ${at}`)
    const size = Math.floor((72_000 * kbps) / rateHz) + ((header[2]! >> 1) & 1)
    if (at + size > bytes.length) throw new Error(`cut frame at byte ${at}`)
    frames.push({ kbps, rateHz, mono: header[3]! >> 6 === 3 })
    at += size
  }
  return frames
}

interface Mp3Recording {
  /** Frames after the first, which holds only this information. */
  readonly frames: number
  readonly sizeBytes: number
  /** Samples before and after the recording. */
  readonly delay: number
  readonly padding: number
}

/** The fields of the first frame (Xing's "Info" with LAME's additions). @throws Error when there are none */
export const mp3Recording = (bytes: Uint8Array): Mp3Recording => {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // Mono MPEG 2: four bytes of header, nine of side information.
  const tag = view.subarray(13)
  if (tag.toString("latin1", 0, 4) !== "Info") throw new Error("no Info frame")
  if (tag.readUInt32BE(4) !== 15) throw new Error("an Info frame without its fields")
  const lame = tag.subarray(120)
  if (!/^LAME3\.\d{2,3}/.test(lame.toString("latin1", 0, 9))) throw new Error("no LAME tag")
  const gaps = lame.readUIntBE(21, 3)
  return {
    frames: tag.readUInt32BE(8),
    sizeBytes: tag.readUInt32BE(12),
    delay: gaps >> 12,
    padding: gaps & 0xfff,
  }
}
