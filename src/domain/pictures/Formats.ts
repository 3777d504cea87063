// The headers of PNG, GIF and BMP files. Pure.
import { type Orientation, orientationOf } from "./Exif.ts"
import { endsEarly, type PictureFlaw, type PictureHead } from "./PictureHead.ts"

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Four letters as a number, the first in the highest byte. */
const chunk = (name: string): number =>
  [...name].reduce((code, letter) => code * 256 + letter.charCodeAt(0), 0)

const ihdr = chunk("IHDR")
const iend = chunk("IEND")
const exif = chunk("eXIf")

/** A chunk of PNG: length, name, data, checksum. */
const pngChunkBytes = 12

/** An animated PNG has its first frame, or a still picture instead, where every PNG has its picture. */
export const pngOf = (bytes: Uint8Array): PictureHead | PictureFlaw => {
  const view = viewOf(bytes)
  if (bytes.length < 33) return endsEarly
  if (view.getUint32(12) !== ihdr) return { flaw: "is a PNG file without a header" }
  const [width, height] = [view.getUint32(16), view.getUint32(20)]
  let orientation: Orientation = 1
  let at = 8
  while (at + pngChunkBytes <= bytes.length) {
    const length = view.getUint32(at)
    const name = view.getUint32(at + 4)
    if (name === exif) orientation = orientationOf(bytes.subarray(at + 8, at + 8 + length)) ?? 1
    at += length + pngChunkBytes
    if (name === iend) break
  }
  const complete = at <= bytes.length && at > 8 && view.getUint32(at - 8) === iend
  return { format: "png", width, height, orientation, bytes: complete ? bytes : undefined }
}

/** Position behind the blocks of data that begin at `at`; undefined if the file ends before. */
const afterBlocks = (bytes: Uint8Array, from: number): number | undefined => {
  let at = from
  for (;;) {
    const length = bytes[at]
    if (length === undefined) return undefined
    at += length + 1
    if (length === 0) return at
  }
}

/** Bytes of a table of colours, from the flags that announce it. */
const tableBytes = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1))

/** The first frame; later ones are left out, so that an animation of any length costs nothing. */
export const gifOf = (bytes: Uint8Array): PictureHead | PictureFlaw => {
  const view = viewOf(bytes)
  if (bytes.length < 13) return endsEarly
  const [width, height] = [view.getUint16(6, true), view.getUint16(8, true)]
  const head = { format: "gif", width, height, orientation: 1 } as const
  let at = 13 + tableBytes(view.getUint8(10))
  for (;;) {
    const kind = bytes[at]
    let end: number | undefined
    if (kind === 0x21) end = afterBlocks(bytes, at + 2)
    else if (kind === 0x2c && at + 10 < bytes.length) {
      end = afterBlocks(bytes, at + 11 + tableBytes(view.getUint8(at + 9)))
    } else
      return kind === undefined || kind === 0x2c
        ? { ...head, bytes: undefined }
        : { flaw: "is a GIF file without a picture" }
    if (end === undefined) return { ...head, bytes: undefined }
    if (kind === 0x2c) {
      const first = new Uint8Array(end + 1)
      first.set(bytes.subarray(0, end))
      // The end of the file.
      first[end] = 0x3b
      return { ...head, bytes: first }
    }
    at = end
  }
}

/** Bytes of a BMP's first two headers in their oldest form. */
const oldestBmpBytes = 26

export const bmpOf = (bytes: Uint8Array): PictureHead | PictureFlaw => {
  const view = viewOf(bytes)
  if (bytes.length < oldestBmpBytes) return endsEarly
  const headerBytes = view.getUint32(14, true)
  if (headerBytes === 12) {
    const [width, height] = [view.getUint16(18, true), view.getUint16(20, true)]
    return { format: "bmp", width, height, orientation: 1, bytes }
  }
  const width = view.getInt32(18, true)
  // A negative height means that the rows are stored from the top.
  const height = Math.abs(view.getInt32(22, true))
  return { format: "bmp", width, height, orientation: 1, bytes }
}
