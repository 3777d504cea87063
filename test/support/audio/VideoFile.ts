// A short video without a sound track, made when a test needs it.
import { AV_PIX_FMT_YUV420P, FF_ENCODER_MPEG4 } from "node-av/constants"
import { Frame, Rational } from "node-av/lib"
import { writeStream } from "./AudioFiles.ts"

const width = 64
const height = 48

/** One second of grey MPEG-4 video in MP4. */
export const videoWithoutSound = (path: string): void =>
  writeStream(path, {
    format: "mp4",
    codec: FF_ENCODER_MPEG4,
    configure: (encoder) => {
      encoder.width = width
      encoder.height = height
      encoder.pixelFormat = AV_PIX_FMT_YUV420P
      encoder.timeBase = new Rational(1, 25)
    },
    *frames() {
      for (let i = 0; i < 25; i++)
        yield Frame.fromVideoBuffer(Buffer.alloc((width * height * 3) / 2, 128), {
          width,
          height,
          format: AV_PIX_FMT_YUV420P,
          pts: BigInt(i),
        })
    },
  })
