// Reads what a request does not carry itself but names in a file of the node: the samples of a span of audio, the pixels of a picture.
import { closeSync, openSync, readSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { type SampleSpan, stretches } from "#domain/audio/SampleRing.ts"
import type { Picture, PictureFile } from "../../protocol/Text.ts"

/** The samples, f32, a new array of `span.count`. @throws if the file is gone or too short: the request was cancelled. */
export const readSpan = (span: SampleSpan): Float32Array => {
  const samples = new Float32Array(span.count)
  const bytes = new Uint8Array(samples.buffer)
  const file = openSync(span.path, "r")
  try {
    let at = 0
    for (const { offsetBytes, samples: count } of stretches(span, span.from, span.count)) {
      const length = count * Float32Array.BYTES_PER_ELEMENT
      if (readSync(file, bytes, at, length, offsetBytes) !== length) throw new Error("the audio ends early")
      at += length
    }
  } finally {
    closeSync(file)
  }
  return samples
}

/** The picture with its pixels. @throws if the file is gone or has another size: the request was cancelled */
export const readPixels = async (picture: Picture | PictureFile): Promise<Picture> => {
  if ("rgb" in picture) return picture
  const { path, ...facts } = picture
  const rgb = await readFile(path)
  if (rgb.length !== facts.width * facts.height * 3) throw new Error("the picture has another size")
  return { ...facts, rgb }
}
