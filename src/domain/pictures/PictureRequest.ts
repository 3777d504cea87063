// A picture on its way from a request to an engine. Its pixels go through a file and not through the gateway's memory: 16
// pictures of a million pixels are 48 MB.

/** What a decoder process is asked for. */
export interface PictureRequest {
  /** Absolute path of the picture file. */
  readonly path: string
  /** Absolute path of the file for the pixels; created if missing. */
  readonly into: string
  /** Most pixels of the result: larger pictures are scaled down. */
  readonly maxPixels: number
}

/** The pixels that were written: red, green and blue of each, row by row from the top. */
export interface DecodedPicture {
  readonly width: number
  readonly height: number
  /** SHA-256 of width, height and pixels, hexadecimal. */
  readonly hash: string
}
