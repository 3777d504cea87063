// Recognises a picture file by its content, never by its name, and reads its size before anything is decoded. Also finds
// files that end early, which decoders would complete with grey. Pure.
import { bmpOf, gifOf, pngOf } from "./Formats.ts"
import { jpegOf } from "./Jpeg.ts"
import { endsEarly, type PictureFlaw, type PictureHead } from "./PictureHead.ts"
import { webpOf } from "./Webp.ts"

const startsWith = (bytes: Uint8Array, start: ReadonlyArray<number>, at = 0): boolean =>
  start.every((byte, index) => bytes[at + index] === byte)

/** Most pixels of a picture (protocol 17.3): phones make pictures of 12 to 50 million. */
export const maxPicturePixels = 50_000_000

/** What the file is, or what is wrong with it. */
export const pictureHeadOf = (
  file: Uint8Array,
): (PictureHead & { readonly bytes: Uint8Array }) | PictureFlaw => {
  const head = readHead(file)
  if ("flaw" in head) return head
  const { bytes, height, width } = head
  if (width < 1 || height < 1) return { flaw: "has no pixels" }
  if (width * height > maxPicturePixels) {
    return { flaw: `has ${width}x${height} pixels, the limit is ${maxPicturePixels} pixels` }
  }
  return bytes === undefined ? endsEarly : { ...head, bytes }
}

const readHead = (bytes: Uint8Array): PictureHead | PictureFlaw => {
  if (bytes.length === 0) return { flaw: "is empty" }
  if (startsWith(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return pngOf(bytes)
  if (startsWith(bytes, [0xff, 0xd8, 0xff])) return jpegOf(bytes)
  if (startsWith(bytes, [0x47, 0x49, 0x46, 0x38])) return gifOf(bytes)
  if (startsWith(bytes, [0x52, 0x49, 0x46, 0x46]) && startsWith(bytes, [0x57, 0x45, 0x42, 0x50], 8)) {
    return webpOf(bytes)
  }
  if (startsWith(bytes, [0x42, 0x4d])) return bmpOf(bytes)
  return { flaw: "is not a PNG, JPEG, WebP, GIF or BMP file" }
}
