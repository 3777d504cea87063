// The size at which a picture is given to a model. Pure.

export interface Size {
  readonly width: number
  readonly height: number
}

/** The largest size of the same shape with at most `maxPixels`; the size itself if it has no more. Sides are at least 1. */
export const fitted = ({ height, width }: Size, maxPixels: number): Size => {
  if (width * height <= maxPixels) return { width, height }
  const scale = Math.sqrt(maxPixels / (width * height))
  const long = Math.max(width, height)
  const short = Math.min(width, height)
  const fittedShort = Math.max(1, Math.round(short * scale))
  // Of the rounded short side, so that the product never exceeds the limit.
  const fittedLong = Math.max(1, Math.min(Math.floor(maxPixels / fittedShort), Math.round(long * scale)))
  return width >= height
    ? { width: fittedLong, height: fittedShort }
    : { width: fittedShort, height: fittedLong }
}
