// Lays transparent pictures on white, in the memory of their decoded frame. Without this a transparent pixel has the
// colour that its program left behind, usually black.
import {
  AV_PIX_FMT_ABGR,
  AV_PIX_FMT_ARGB,
  AV_PIX_FMT_BGRA,
  AV_PIX_FMT_RGBA,
  AV_PIX_FMT_RGBA64BE,
  AV_PIX_FMT_RGBA64LE,
  AV_PIX_FMT_YA8,
  AV_PIX_FMT_YA16BE,
  AV_PIX_FMT_YA16LE,
  AV_PIX_FMT_YUVA420P,
  AV_PIX_FMT_YUVA444P,
} from "node-av/constants"
import type { Frame } from "node-av/lib"

/** Where the most significant bytes of a pixel's values are, in a format whose pixels lie in one plane. */
interface Packed {
  readonly colours: ReadonlyArray<number>
  readonly alpha: number
  readonly step: number
  /** From a value's most significant byte to the other one; 0 if it has only one. */
  readonly low: number
}

const packed: ReadonlyMap<number, Packed> = new Map<number, Packed>([
  [AV_PIX_FMT_RGBA, { colours: [0, 1, 2], alpha: 3, step: 4, low: 0 }],
  [AV_PIX_FMT_BGRA, { colours: [0, 1, 2], alpha: 3, step: 4, low: 0 }],
  [AV_PIX_FMT_ARGB, { colours: [1, 2, 3], alpha: 0, step: 4, low: 0 }],
  [AV_PIX_FMT_ABGR, { colours: [1, 2, 3], alpha: 0, step: 4, low: 0 }],
  [AV_PIX_FMT_RGBA64BE, { colours: [0, 2, 4], alpha: 6, step: 8, low: 1 }],
  [AV_PIX_FMT_RGBA64LE, { colours: [1, 3, 5], alpha: 7, step: 8, low: -1 }],
  [AV_PIX_FMT_YA8, { colours: [0], alpha: 1, step: 2, low: 0 }],
  [AV_PIX_FMT_YA16BE, { colours: [0], alpha: 2, step: 4, low: 1 }],
  [AV_PIX_FMT_YA16LE, { colours: [1], alpha: 3, step: 4, low: -1 }],
])

/** Bits by which the planes of colour differences are smaller, in a format with a plane for each value. */
const planar: ReadonlyMap<number, number> = new Map<number, number>([
  [AV_PIX_FMT_YUVA420P, 1],
  [AV_PIX_FMT_YUVA444P, 0],
])

/** White in video's range, which lossy WebP has. */
const whiteLuma = 235
const noColour = 128

const blend = (value: number, white: number, alpha: number): number =>
  Math.round(white + ((value - white) * alpha) / 255)

const whitenPacked = (
  bytes: Uint8Array,
  stride: number,
  { height, width }: Frame,
  { alpha, colours, low, step }: Packed,
): void => {
  for (let y = 0; y < height; y++) {
    for (let at = y * stride, end = at + width * step; at < end; at += step) {
      const opacity = bytes[at + alpha] as number
      if (opacity === 255) continue
      for (const colour of colours) {
        const value = blend(bytes[at + colour] as number, 255, opacity)
        bytes[at + colour] = value
        // 16 bits: the same byte twice, so that 255 becomes 65,535.
        if (low !== 0) bytes[at + colour + low] = value
      }
    }
  }
}

const whitenPlanes = (frame: Frame, planes: ReadonlyArray<Uint8Array>, shift: number): void => {
  const { height, linesize, width } = frame
  const alphas = planes[3] as Uint8Array
  const strideOf = (plane: number): number => linesize[plane] ?? 0
  for (const [index, plane] of planes.slice(0, 3).entries()) {
    const bits = index === 0 ? 0 : shift
    const white = index === 0 ? whiteLuma : noColour
    for (let y = 0; y << bits < height; y++) {
      for (let x = 0; x << bits < width; x++) {
        const at = y * strideOf(index) + x
        const alpha = alphas[(y << bits) * strideOf(3) + (x << bits)] as number
        if (alpha !== 255) plane[at] = blend(plane[at] as number, white, alpha)
      }
    }
  }
}

/** Lays the frame on white if it may be transparent. */
export const whiten = (frame: Frame): void => {
  const { data } = frame
  const inOnePlane = packed.get(frame.format)
  if (data?.[0] !== undefined && inOnePlane !== undefined) {
    whitenPacked(data[0], frame.linesize[0] ?? 0, frame, inOnePlane)
  }
  const shift = planar.get(frame.format)
  if (data?.length === 4 && shift !== undefined) whitenPlanes(frame, data, shift)
}
