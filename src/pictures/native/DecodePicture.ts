// Decodes an untrusted picture to RGB, upright, on white, at most as large as its model takes. Runs in the decoder process
// only. The file's format and size are read before any native code sees it.
import {
  AV_FRAME_FLAG_INTERLACED,
  AV_LOG_QUIET,
  AV_PIX_FMT_PAL8,
  AV_PIX_FMT_RGB24,
  AV_PIX_FMT_RGBA,
  FF_DECODER_BMP,
  FF_DECODER_GIF,
  FF_DECODER_MJPEG,
  FF_DECODER_PNG,
  FF_DECODER_WEBP,
} from "node-av/constants"
import { Codec, CodecContext, Frame, Log, Packet, SoftwareScaleContext } from "node-av/lib"
import { type Pixels, upright } from "#domain/pictures/Exif.ts"
import { fitted, type Size } from "#domain/pictures/Fit.ts"
import { maxPicturePixels, pictureHeadOf } from "#domain/pictures/PictureFile.ts"
import type { PictureFormat, PictureHead } from "#domain/pictures/PictureHead.ts"
import { whiten } from "./Whiten.ts"

/** A refused picture. The message is the end of a sentence whose subject is the picture. */
export class PictureRefused extends Error {}

/** FFmpeg's names of the decoders. */
const decoders = {
  png: FF_DECODER_PNG,
  jpeg: FF_DECODER_MJPEG,
  webp: FF_DECODER_WEBP,
  gif: FF_DECODER_GIF,
  bmp: FF_DECODER_BMP,
} satisfies Record<PictureFormat, unknown>

/** AVERROR(ENOMEM). */
const outOfMemory = -12

const refuse = (status: number): PictureRefused =>
  new PictureRefused(status === outOfMemory ? "takes too much memory to decode" : "is damaged")

/** Smooth also where a picture shrinks to a fraction: the filter grows with it. Colours at full resolution, rounded. */
const scaling = "bicubic+accurate_rnd+full_chroma_int"

/** Decodes the first frame into `frame`. The asynchronous calls run on another thread, so that the time can be watched. */
const decodeInto = async (frame: Frame, format: PictureFormat, bytes: Uint8Array): Promise<void> => {
  const codec = Codec.findDecoderByName(decoders[format])
  if (codec === null) throw new Error(`no decoder for ${format}`)
  const context = new CodecContext()
  const packet = new Packet()
  try {
    context.allocContext3(codec)
    context.threadCount = 1
    // The header that the codec reads may be another one than the one that was checked.
    context.setOption("max_pixels", String(maxPicturePixels))
    // Without this the missing part of a damaged picture is grey.
    context.setOption("err_detect", "explode")
    if (context.open2Sync(codec, null) < 0) throw new Error(`the decoder for ${format} cannot be opened`)
    packet.alloc()
    packet.data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const sent = await context.sendPacket(packet)
    if (sent < 0) throw refuse(sent)
    await context.sendPacket(null)
    const received = await context.receiveFrame(frame)
    if (received < 0) throw refuse(received)
    // Of an interlaced PNG. For the scaler the word means two fields of video, which it does not scale.
    frame.flags &= ~AV_FRAME_FLAG_INTERLACED
    if (frame.width < 1 || frame.height < 1 || frame.decodeErrorFlags !== 0) throw refuse(0)
  } finally {
    packet.free()
    context.freeContext()
  }
}

/** A copy of the frame in another format and size. The caller frees it. */
const converted = async (
  frame: Frame,
  format: typeof AV_PIX_FMT_RGB24 | typeof AV_PIX_FMT_RGBA,
  size: Size,
) => {
  const scaler = new SoftwareScaleContext()
  const target = new Frame()
  try {
    scaler.allocContext()
    scaler.setOption("sws_flags", scaling)
    target.alloc()
    target.width = size.width
    target.height = size.height
    target.format = format
    const allocated = target.getBuffer(0)
    if (allocated < 0) throw refuse(allocated)
    const scaled = await scaler.scaleFrame(target, frame)
    if (scaled < 0) throw refuse(scaled)
    return target
  } catch (cause) {
    target.free()
    throw cause
  } finally {
    scaler.freeContext()
  }
}

/** The rows of a frame without what fills them up. */
const rgbOf = (frame: Frame): Pixels => {
  const { data, height, linesize, width } = frame
  const [plane] = data ?? []
  const stride = linesize[0] ?? 0
  if (plane === undefined) throw refuse(outOfMemory)
  const rgb = new Uint8Array(width * height * 3)
  for (let y = 0; y < height; y++) {
    rgb.set(plane.subarray(y * stride, y * stride + width * 3), y * width * 3)
  }
  return { width, height, rgb }
}

/**
 * @param file the whole file
 * @param maxPixels of the result
 * @param onHead called before anything is decoded
 * @throws PictureRefused
 */
export const decodePicture = async (
  file: Uint8Array,
  maxPixels: number,
  onHead: (head: PictureHead, sizeBytes: number) => void = () => {},
): Promise<Pixels> => {
  Log.setLevel(AV_LOG_QUIET)
  const head = pictureHeadOf(file)
  if ("flaw" in head) throw new PictureRefused(head.flaw)
  onHead(head, file.length)
  const frame = new Frame()
  const frames = [frame]
  try {
    frame.alloc()
    await decodeInto(frame, head.format, head.bytes)
    let whole = frame
    // The colours of its palette cannot be read from here, and some may be transparent.
    if (frame.format === AV_PIX_FMT_PAL8) {
      whole = await converted(frame, AV_PIX_FMT_RGBA, frame)
      frames.push(whole)
    }
    // A JPEG's fourth value is black, which its decoder has put into the others.
    if (head.format !== "jpeg") whiten(whole)
    const small = await converted(whole, AV_PIX_FMT_RGB24, fitted(frame, maxPixels))
    frames.push(small)
    return upright(rgbOf(small), head.orientation)
  } finally {
    for (const each of frames) each.free()
  }
}
