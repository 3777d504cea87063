// A short video without a sound track, made when a test needs it.
import { AV_CODEC_FLAG_GLOBAL_HEADER, AV_PIX_FMT_YUV420P, FF_ENCODER_MPEG4 } from "node-av/constants"
import { Codec, CodecContext, FormatContext, Frame, Packet, Rational } from "node-av/lib"

const width = 64
const height = 48

/** One second of grey MPEG-4 video in MP4. */
export const videoWithoutSound = (path: string): void => {
  const must = (status: number): number => {
    if (status < 0) throw new Error(`FFmpeg failed to write a video (${status})`)
    return status
  }
  const codec = Codec.findEncoderByName(FF_ENCODER_MPEG4)
  if (codec === null) throw new Error("no MPEG-4 encoder")
  const encoder = new CodecContext()
  encoder.allocContext3(codec)
  encoder.width = width
  encoder.height = height
  encoder.pixelFormat = AV_PIX_FMT_YUV420P
  encoder.timeBase = new Rational(1, 25)
  encoder.flags = AV_CODEC_FLAG_GLOBAL_HEADER
  must(encoder.open2Sync(codec, null))
  const format = new FormatContext()
  must(format.allocOutputContext2(null, "mp4", path))
  const stream = format.newStream(codec)
  must(stream.codecpar.fromContext(encoder))
  stream.timeBase = encoder.timeBase
  must(format.openOutputSync())
  must(format.writeHeaderSync())
  const packet = new Packet()
  packet.alloc()
  const drain = () => {
    while (encoder.receivePacketSync(packet) >= 0) {
      packet.streamIndex = stream.index
      packet.rescaleTs(encoder.timeBase, stream.timeBase)
      must(format.interleavedWriteFrameSync(packet))
    }
  }
  for (let i = 0; i < 25; i++) {
    const frame = Frame.fromVideoBuffer(Buffer.alloc((width * height * 3) / 2, 128), {
      width,
      height,
      format: AV_PIX_FMT_YUV420P,
      pts: BigInt(i),
    })
    must(encoder.sendFrameSync(frame))
    frame.free()
    drain()
  }
  encoder.sendFrameSync(null)
  drain()
  must(format.writeTrailerSync())
  format.closeOutputSync()
  packet.free()
  encoder.freeContext()
}
