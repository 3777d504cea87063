// Decodes a picture file into a file of pixels, and watches the time that it takes. Runs in the decoder process only.
import { createHash } from "node:crypto"
import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs"
import { allowedMs } from "#domain/pictures/Allowance.ts"
import type { Pixels } from "#domain/pictures/Exif.ts"
import type { PictureHead } from "#domain/pictures/PictureHead.ts"
import type { DecodedPicture, PictureRequest } from "#domain/pictures/PictureRequest.ts"
import { decodePicture, PictureRefused } from "./DecodePicture.ts"

type Answer =
  | { readonly t: "picture"; readonly picture: DecodedPicture }
  | { readonly t: "rejected"; readonly reason: "BadPicture"; readonly detail: string }
  | { readonly t: "unwritable"; readonly code: string }

/** A guess: often enough for a limit of half a second. */
const watchEveryMs = 50

const store = (path: string, { rgb }: Pixels): void => {
  // Not truncated, which a confined process may not do: the file is new, or of the same picture.
  const file = openSync(path, constants.O_CREAT | constants.O_RDWR, 0o600)
  try {
    for (let at = 0; at < rgb.length; ) at += writeSync(file, rgb, at)
  } finally {
    closeSync(file)
  }
}

const hashOf = ({ height, rgb, width }: Pixels): string =>
  createHash("sha256").update(`${width}x${height}\n`).update(rgb).digest("hex")

/** @param onCostly called when the decode has used its time; it goes on, and the process has to be ended */
export const writePicture = async (
  { into, maxPixels, path }: PictureRequest,
  onCostly: (detail: string) => void,
): Promise<Answer> => {
  const before = process.cpuUsage()
  let watch: NodeJS.Timeout | undefined
  const onHead = (head: PictureHead, sizeBytes: number): void => {
    const mostMs = allowedMs(head, sizeBytes)
    watch = setInterval(() => {
      const { system, user } = process.cpuUsage(before)
      if ((system + user) / 1000 < mostMs) return
      clearInterval(watch)
      onCostly(`takes more than ${Math.round(mostMs)} ms to decode`)
    }, watchEveryMs)
  }
  try {
    const pixels = await decodePicture(readFileSync(path), maxPixels, onHead)
    try {
      store(into, pixels)
    } catch (cause) {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
      return { t: "unwritable", code }
    }
    const { height, width } = pixels
    return { t: "picture", picture: { width, height, hash: hashOf(pixels) } }
  } catch (cause) {
    // Any other error is a bug of this program: it ends the process, and the parent reports the failure.
    if (!(cause instanceof PictureRefused)) throw cause
    return { t: "rejected", reason: "BadPicture", detail: cause.message }
  } finally {
    clearInterval(watch)
  }
}
