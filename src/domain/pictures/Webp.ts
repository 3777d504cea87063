// The chunks of a WebP file. Pure. An animation becomes a file with its first frame, because the decoder reads no others.
import { type Orientation, orientationOf } from "./Exif.ts"
import { endsEarly, type PictureFlaw, type PictureHead } from "./PictureHead.ts"

interface Chunk {
  readonly name: string
  /** Where its name begins, and where its data does. */
  readonly at: number
  readonly body: number
  /** Behind its data and the byte that makes its length even. */
  readonly end: number
  readonly length: number
}

const letters = (bytes: Uint8Array, at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4))

/** A guess: a picture has five, an animation one for each frame and only the first of these is needed. */
const mostChunks = 4_096

/** The chunks between two positions. The last one is left out if it goes beyond the end. */
const chunksIn = (bytes: Uint8Array, from: number, to: number): ReadonlyArray<Chunk> => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found: Array<Chunk> = []
  for (let at = from; at + 8 <= to && found.length < mostChunks; ) {
    const length = view.getUint32(at + 4, true)
    if (at + 8 + length > to) break
    const end = Math.min(to, at + 8 + length + (length & 1))
    found.push({ name: letters(bytes, at), at, body: at + 8, end, length })
    at = end
  }
  return found
}

/** Width and height of a chunk with pixels. */
const sizeOf = (
  bytes: Uint8Array,
  { body, length, name }: Chunk,
): { width: number; height: number } | undefined => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (name === "VP8 " && length >= 10) {
    return { width: view.getUint16(body + 6, true) & 0x3fff, height: view.getUint16(body + 8, true) & 0x3fff }
  }
  if (name !== "VP8L" || length < 5) return undefined
  const bits = view.getUint32(body + 1, true)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

const hasPixels = ({ name }: Chunk): boolean => name === "VP8 " || name === "VP8L"

/** A frame's header before its chunks: place, size, duration, flags. */
const frameHeaderBytes = 16

/** A file of the chunks with the transparency and the pixels of one frame. */
const fileOf = (
  bytes: Uint8Array,
  chunks: ReadonlyArray<Chunk>,
  { height, width }: { readonly width: number; readonly height: number },
): Uint8Array => {
  const kept = chunks.filter((chunk) => hasPixels(chunk) || chunk.name === "ALPH")
  const extended = kept.some(({ name }) => name === "ALPH")
  const sizeBytes = kept.reduce((sum, { at, end }) => sum + end - at, 12 + (extended ? 18 : 0))
  const file = Buffer.alloc(sizeBytes)
  file.write("RIFF", 0)
  file.writeUInt32LE(sizeBytes - 8, 4)
  file.write("WEBP", 8)
  let at = 12
  if (extended) {
    file.write("VP8X", at)
    file.writeUInt32LE(10, at + 4)
    // The flag of transparency.
    file.writeUInt8(0x10, at + 8)
    file.writeUIntLE(width - 1, at + 12, 3)
    file.writeUIntLE(height - 1, at + 15, 3)
    at += 18
  }
  for (const chunk of kept) {
    file.set(bytes.subarray(chunk.at, chunk.end), at)
    at += chunk.end - chunk.at
  }
  return file
}

export const webpOf = (bytes: Uint8Array): PictureHead | PictureFlaw => {
  const chunks = chunksIn(bytes, 12, bytes.length)
  const exif = chunks.find(({ name }) => name === "EXIF")
  const orientation: Orientation =
    exif === undefined ? 1 : (orientationOf(bytes.subarray(exif.body, exif.body + exif.length)) ?? 1)
  const frame = chunks.find(({ name }) => name === "ANMF")
  const inFrame =
    frame === undefined ? chunks : chunksIn(bytes, frame.body + frameHeaderBytes, frame.body + frame.length)
  const pixels = inFrame.find(hasPixels)
  if (pixels === undefined) return endsEarly
  const size = sizeOf(bytes, pixels)
  if (size === undefined) return { flaw: "is a damaged WebP file" }
  return {
    format: "webp",
    ...size,
    orientation,
    bytes: frame === undefined ? bytes : fileOf(bytes, inFrame, size),
  }
}
