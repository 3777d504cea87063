// What the header of a picture file says. Types.
import type { Orientation } from "./Exif.ts"

export type PictureFormat = "png" | "jpeg" | "webp" | "gif" | "bmp"

export interface PictureHead {
  readonly format: PictureFormat
  /** As stored, before the orientation is applied. */
  readonly width: number
  readonly height: number
  readonly orientation: Orientation
  /** What the decoder gets: the file, or a file with its first frame alone. Undefined if the file ends before its picture does. */
  readonly bytes: Uint8Array | undefined
}

/** Why a file is no picture that can be read: the end of a sentence whose subject is the file. */
export interface PictureFlaw {
  readonly flaw: string
}

export const endsEarly: PictureFlaw = { flaw: "ends before its picture does" }
