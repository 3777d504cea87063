// A strict reader of constant-rate MP3: frame after frame from the first byte to the last, nothing between them.

const KBPS_MPEG2_LAYER3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const RATES_MPEG2 = [22_050, 24_000, 16_000]

export interface Mp3Frame {
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
    const kbps = KBPS_MPEG2_LAYER3[header[2]! >> 4]
    const rateHz = RATES_MPEG2[(header[2]! >> 2) & 3]
    if (!kbps || rateHz === undefined) throw new Error(`bad header at byte ${at}`)
    const size = Math.floor((72_000 * kbps) / rateHz) + ((header[2]! >> 1) & 1)
    if (at + size > bytes.length) throw new Error(`cut frame at byte ${at}`)
    frames.push({ kbps, rateHz, mono: header[3]! >> 6 === 3 })
    at += size
  }
  return frames
}
