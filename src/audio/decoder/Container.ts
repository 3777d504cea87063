// Recognises a file's container by its content, never by its name. Pure except for the reader. The native library is
// given the result and does not probe, so only one demuxer ever parses the bytes.

/** FFmpeg's demuxer names of the six supported container families (protocol 9.1). */
export type Container = "mp3" | "wav" | "mov" | "ogg" | "flac" | "matroska"

/** Up to `length` bytes from `offset`; fewer at the end of the file. */
export type ReadAt = (offset: number, length: number) => Uint8Array

/** Search range for the first MP3 frame after the tags; encoders pad with a few KB at most. A guess. */
const mp3ScanBytes = 65_536
/** Consecutive frames that distinguish MPEG audio from noise, where one header matches about every 1,500th position. */
const mp3FramesInARow = 3
/** A tag may hold a cover picture. Several tags in a row occur by mistake, many only in attacks. */
const maxId3Tags = 4

const at = (bytes: Uint8Array, offset: number, word: string): boolean => {
  for (let i = 0; i < word.length; i++) if (bytes[offset + i] !== word.charCodeAt(i)) return false
  return true
}

/** Kbit/s by index, Layer III; 0 is "free", which no decoder here accepts. ISO 11172-3 table and 13818-3. */
const mpeg1Kbps = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const mpeg2Kbps = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const mpeg1RatesHz = [44_100, 48_000, 32_000]

/** Size of the MPEG audio Layer III frame whose header is at `offset`. Undefined if there is none. */
const mp3FrameBytes = (bytes: Uint8Array, offset: number): number | undefined => {
  if (offset + 4 > bytes.length) return undefined
  const [sync, head, rates] = [bytes[offset]!, bytes[offset + 1]!, bytes[offset + 2]!]
  if (sync !== 0xff || (head & 0xe0) !== 0xe0) return undefined
  const version = (head >> 3) & 3 // 0: MPEG 2.5, 1: reserved, 2: MPEG 2, 3: MPEG 1
  const layer = (head >> 1) & 3 // 1: Layer III
  if (version === 1 || layer !== 1) return undefined
  const kbps = (version === 3 ? mpeg1Kbps : mpeg2Kbps)[rates >> 4]
  const baseRate = mpeg1RatesHz[(rates >> 2) & 3]
  if (kbps === undefined || kbps === 0 || baseRate === undefined) return undefined
  const rateHz = version === 3 ? baseRate : version === 2 ? baseRate / 2 : baseRate / 4
  return Math.floor(((version === 3 ? 144 : 72) * kbps * 1000) / rateHz) + ((rates >> 1) & 1)
}

const isMp3 = (read: ReadAt, start: number): boolean => {
  const bytes = read(start, mp3ScanBytes)
  // At the very start one frame is enough, so that a clip of 30 ms is not refused.
  if (mp3FrameBytes(bytes, 0) !== undefined) return true
  for (let offset = 1; offset + 4 <= bytes.length; offset++) {
    let frames = 0
    for (let next = offset; frames < mp3FramesInARow; frames++) {
      const size = mp3FrameBytes(bytes, next)
      if (size === undefined) break
      next += size
    }
    if (frames === mp3FramesInARow) return true
  }
  return false
}

/** Offset after any ID3v2 tags at the start of the file. */
const afterId3 = (read: ReadAt): number => {
  let offset = 0
  for (let tags = 0; tags < maxId3Tags; tags++) {
    const head = read(offset, 10)
    if (head.length < 10 || !at(head, 0, "ID3")) break
    // 28 bits, seven per byte.
    const size =
      ((head[6]! & 127) << 21) | ((head[7]! & 127) << 14) | ((head[8]! & 127) << 7) | (head[9]! & 127)
    const footer = (head[5]! & 0x10) === 0 ? 0 : 10
    offset += 10 + size + footer
  }
  return offset
}

export const containerOf = (read: ReadAt): Container | undefined => {
  const head = read(0, 12)
  if ((at(head, 0, "RIFF") || at(head, 0, "RF64") || at(head, 0, "BW64")) && at(head, 8, "WAVE")) return "wav"
  if (at(head, 4, "ftyp")) return "mov"
  if (at(head, 0, "OggS")) return "ogg"
  if (at(head, 0, "fLaC")) return "flac"
  if (at(head, 0, "\x1a\x45\xdf\xa3")) return "matroska"
  const audio = afterId3(read)
  if (audio > 0 && at(read(audio, 4), 0, "fLaC")) return "flac"
  return isMp3(read, audio) ? "mp3" : undefined
}
