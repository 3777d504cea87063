// How much processor time the decoding of a picture may take. Pure.
import type { Size } from "./Fit.ts"

/**
 * Processor time of a decode, ms: for any picture, for a million pixels, and for a megabyte. Decoding 40 million pixels of
 * a progressive JPEG took 0.6 s, 1.6 MB of incompressible PNG 15 ms (measured on a two-core EPYC); these are about three
 * times that. A file can take longer only by being made for it, for example with thousands of passes over its pixels.
 */
export const allowance = { any: 500, perMegapixel: 40, perMegabyte: 30 }

export const allowedMs = ({ height, width }: Size, sizeBytes: number): number =>
  allowance.any + (allowance.perMegapixel * width * height) / 1e6 + (allowance.perMegabyte * sizeBytes) / 1e6
