// The orientation in a picture's EXIF data: how a camera was held. Pure.

/** 1 to 8 as in EXIF: 1 is upright; from 5 on, width and height change places. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8

const orientationTag = 0x0112
const shortType = 3
const entryBytes = 12

const isOrientation = (value: number): value is Orientation => value >= 1 && value <= 8

/**
 * The orientation in a TIFF structure, which is what EXIF data is behind its name.
 * @returns undefined if there is none, or if the data is damaged
 */
export const orientationOf = (tiff: Uint8Array): Orientation | undefined => {
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength)
  if (tiff.length < 8) return undefined
  const order = view.getUint16(0)
  // "II": the least significant byte first; "MM": the most significant one.
  if (order !== 0x4949 && order !== 0x4d4d) return undefined
  const little = order === 0x4949
  const directory = view.getUint32(4, little)
  if (directory + 2 > tiff.length) return undefined
  const entries = view.getUint16(directory, little)
  for (let index = 0; index < entries; index++) {
    const at = directory + 2 + index * entryBytes
    if (at + entryBytes > tiff.length) return undefined
    if (view.getUint16(at, little) !== orientationTag || view.getUint16(at + 2, little) !== shortType)
      continue
    const value = view.getUint16(at + 8, little)
    return isOrientation(value) ? value : undefined
  }
  return undefined
}

/** Where pixel (x, y) of the upright picture lies in the stored one of `width` by `height`: its index. */
const storedIndex = (
  orientation: Orientation,
  width: number,
  height: number,
): ((x: number, y: number) => number) => {
  switch (orientation) {
    case 1:
      return (x, y) => y * width + x
    case 2:
      return (x, y) => y * width + (width - 1 - x)
    case 3:
      return (x, y) => (height - 1 - y) * width + (width - 1 - x)
    case 4:
      return (x, y) => (height - 1 - y) * width + x
    case 5:
      return (x, y) => x * width + y
    case 6:
      return (x, y) => (height - 1 - x) * width + y
    case 7:
      return (x, y) => (height - 1 - x) * width + (width - 1 - y)
    case 8:
      return (x, y) => x * width + (width - 1 - y)
  }
}

export interface Pixels {
  readonly width: number
  readonly height: number
  /** Red, green and blue of every pixel, row by row from the top. */
  readonly rgb: Uint8Array
}

/** The picture as it was seen by the camera. */
export const upright = ({ height, rgb, width }: Pixels, orientation: Orientation): Pixels => {
  if (orientation === 1) return { width, height, rgb }
  const turned = orientation >= 5
  const [uprightWidth, uprightHeight] = turned ? [height, width] : [width, height]
  const index = storedIndex(orientation, width, height)
  const out = new Uint8Array(rgb.length)
  let to = 0
  for (let y = 0; y < uprightHeight; y++) {
    for (let x = 0; x < uprightWidth; x++) {
      const from = 3 * index(x, y)
      out[to++] = rgb[from] as number
      out[to++] = rgb[from + 1] as number
      out[to++] = rgb[from + 2] as number
    }
  }
  return { width: uprightWidth, height: uprightHeight, rgb: out }
}
