// The first frame of an MP3 file (the "Info" frame of Xing and LAME, which every player reads): the number of frames,
// and how many samples at both ends are not part of the recording. Decoders that do not know it play silence. Without
// it players add the encoder's delay to every file. Pure.

/** Samples that LAME 3.100 puts before the recording: lame_get_encoder_delay(), checked by a test. */
const encoderDelay = 576
/** Samples of one frame of MPEG 2 Layer III. */
const mp3FrameSamples = 576
/** Frame header and side information of a mono MPEG 2 frame. */
const tagAt = 4 + 9
/** Number of frames, number of bytes, table of contents, quality: all present. */
const allFields = 0x0f
const constantBitRate = 1

const crcTable = Uint16Array.from({ length: 256 }, (_, byte) => {
  let r = byte
  for (let bit = 0; bit < 8; bit++) r = r & 1 ? (r >>> 1) ^ 0xa001 : r >>> 1
  return r
})

/** CRC-16 as LAME writes it (polynomial 0x8005 reflected, start 0), continued from `crc`. */
export const mp3Crc = (bytes: Uint8Array, crc: number): number => {
  let value = crc
  for (let i = 0; i < bytes.length; i++) value = (value >>> 8) ^ crcTable[(value ^ bytes[i]!) & 0xff]!
  return value
}

interface Mp3Recording {
  /** Input samples of the encoder. */
  readonly samples: number
  /** Output frames, all of one size. */
  readonly frames: number
  readonly frameBytes: number
  readonly kbps: number
  /** `mp3Crc` of all frames, from 0. */
  readonly crc: number
}

/** @param header the first four bytes of any of the recording's frames */
export const mp3InfoFrame = (header: Uint8Array, recording: Mp3Recording): Uint8Array => {
  const { crc, frameBytes, frames, kbps, samples } = recording
  const frame = new Uint8Array(frameBytes)
  const view = new DataView(frame.buffer)
  frame.set(header.subarray(0, 4))
  const text = (at: number, word: string) => {
    for (let i = 0; i < word.length; i++) frame[at + i] = word.charCodeAt(i)
  }
  const sizeBytes = frameBytes * (frames + 1)
  text(tagAt, "Info")
  view.setUint32(tagAt + 4, allFields)
  view.setUint32(tagAt + 8, frames)
  view.setUint32(tagAt + 12, sizeBytes)
  // All frames have one size, so each hundredth of the time is a hundredth of the bytes.
  for (let i = 0; i < 100; i++) frame[tagAt + 16 + i] = Math.floor((i * 256) / 100)
  const lame = tagAt + 120
  text(lame, "LAME3.100")
  frame[lame + 9] = constantBitRate
  frame[lame + 20] = kbps
  const padding = frames * mp3FrameSamples - encoderDelay - samples
  frame[lame + 21] = encoderDelay >> 4
  frame[lame + 22] = ((encoderDelay & 15) << 4) | (padding >> 8)
  frame[lame + 23] = padding & 0xff
  view.setUint32(lame + 28, sizeBytes)
  view.setUint16(lame + 32, crc)
  view.setUint16(lame + 34, mp3Crc(frame.subarray(0, lame + 34), 0))
  return frame
}
