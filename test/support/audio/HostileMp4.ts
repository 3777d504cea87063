// M4A files for tests: files of a few kilobytes whose tables declare millions of samples, for which a demuxer without limits builds
// an index of gigabytes; and a valid file of many hours. All comply with the format.

const u8 = (...values: ReadonlyArray<number>): Buffer => Buffer.from(values)
const u16 = (...values: ReadonlyArray<number>): Buffer =>
  Buffer.from(values.flatMap((value) => [(value >> 8) & 0xff, value & 0xff]))
const u32 = (...values: ReadonlyArray<number>): Buffer => {
  const out = Buffer.alloc(4 * values.length)
  for (const [nth, value] of values.entries()) out.writeUInt32BE(value >>> 0, 4 * nth)
  return out
}
const zeros = (bytes: number): Buffer => Buffer.alloc(bytes)

const box = (type: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(parts)
  return Buffer.concat([u32(8 + body.length), Buffer.from(type, "latin1"), body])
}
/** A box with version 0 and these flags. */
const full = (type: string, flags: number, ...parts: ReadonlyArray<Buffer>): Buffer =>
  box(type, u32(flags), ...parts)

const rateHz = 44_100
const matrix = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000)

/** The description of the audio: AAC, 44.1 kHz, mono. */
const soundDescription = (): Buffer => {
  const config = Buffer.concat([u8(0x05, 2), u8(0x12, 0x08)])
  const decoder = Buffer.concat([u8(0x04, 13 + config.length, 0x40, 0x15), zeros(11), config])
  const esds = full("esds", 0, u8(0x03, 3 + decoder.length), u16(1), u8(0), decoder)
  const sound = Buffer.concat([zeros(6), u16(1), zeros(8), u16(1, 16), zeros(4), u32(rateHz * 65_536)])
  return full("stsd", 0, u32(1), box("mp4a", sound, esds))
}

interface Tables {
  readonly samples: number
  /** Bytes of each sample; 0 if the sizes are in fragments. */
  readonly sampleBytes: number
  /** A table of composition offsets that declares all samples in one entry. */
  readonly offsets: boolean
}

const track = (id: number, { offsets, sampleBytes, samples }: Tables, at: number): Buffer => {
  const none = samples === 0
  const tables = box(
    "stbl",
    soundDescription(),
    full("stts", 0, none ? u32(0) : u32(1, samples, 1024)),
    ...(offsets ? [full("ctts", 0, u32(1, samples, 512))] : []),
    full("stsc", 0, none ? u32(0) : u32(1, 1, samples, 1)),
    full("stsz", 0, u32(sampleBytes, samples)),
    full("stco", 0, none ? u32(0) : u32(1, at)),
  )
  const media = box(
    "minf",
    full("smhd", 0, zeros(4)),
    box("dinf", full("dref", 0, u32(1), full("url ", 1))),
    tables,
  )
  return box(
    "trak",
    full("tkhd", 7, u32(0, 0, id, 0, samples), zeros(16), matrix, zeros(8)),
    box(
      "mdia",
      full("mdhd", 0, u32(0, 0, rateHz, 0), zeros(4)),
      full("hdlr", 0, zeros(4), Buffer.from("soun"), zeros(13)),
      media,
    ),
  )
}

const fileType = box("ftyp", Buffer.from("M4A \x00\x00\x02\x00M4A isom", "latin1"))
const movieHead = full(
  "mvhd",
  0,
  u32(0, 0, 1000, 0, 0x10000),
  u16(0x100, 0),
  zeros(8),
  matrix,
  zeros(24),
  u32(9),
)

/** Each track declares `samples` samples of one byte, all in one chunk; the file contains `sizeBytes` of them. */
export const boastingTables = (
  samples: number,
  tracks: number,
  { offsets = false, sizeBytes = 4_096 }: { readonly offsets?: boolean; readonly sizeBytes?: number } = {},
): Buffer => {
  const tables = { samples, sampleBytes: 1, offsets }
  const boxes = Array.from({ length: tracks }, (_, nth) => track(nth + 1, tables, 64))
  return Buffer.concat([fileType, box("moov", movieHead, ...boxes), box("mdat", zeros(sizeBytes))])
}

/** A frame of AAC silence, mono. */
const silence = u8(0x01, 0x18, 0x20, 0x07)

/** A valid file with that many frames of silence, 23 ms each. */
export const longSilence = (frames: number): Buffer => {
  const tables = { samples: frames, sampleBytes: silence.length, offsets: false }
  const sizeOfHead = Buffer.concat([fileType, box("moov", movieHead, track(1, tables, 0))]).length
  const head = Buffer.concat([fileType, box("moov", movieHead, track(1, tables, sizeOfHead + 8))])
  return Buffer.concat([head, box("mdat", Buffer.alloc(frames * silence.length, silence))])
}

/** Fragments that declare `samples` samples each, in tables of no bytes. */
export const boastingFragments = (samples: number, fragments: number): Buffer => {
  const head = box(
    "moov",
    movieHead,
    track(1, { samples: 0, sampleBytes: 0, offsets: false }, 0),
    box("mvex", full("trex", 0, u32(1, 1, 1024, 1, 0))),
  )
  const fragment = (nth: number): Buffer =>
    Buffer.concat([
      box(
        "moof",
        full("mfhd", 0, u32(nth + 1)),
        box("traf", full("tfhd", 0x20000, u32(1)), full("trun", 0, u32(samples))),
      ),
      box("mdat", zeros(64)),
    ])
  return Buffer.concat([fileType, head, ...Array.from({ length: fragments }, (_, nth) => fragment(nth))])
}
