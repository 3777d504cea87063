// Small audio files of every kind that the service accepts, made when a test needs them: nothing binary is kept in
// the repository. The signal is a chirp that fades in and out, so that a cut or a gap would show in its energy.
import { writeFileSync } from "node:fs"
import {
  AV_CODEC_FLAG_GLOBAL_HEADER,
  AV_SAMPLE_FMT_FLT,
  AV_SAMPLE_FMT_FLTP,
  AV_SAMPLE_FMT_S16,
  type AVSampleFormat,
  FF_ENCODER_AAC,
  FF_ENCODER_FLAC,
  FF_ENCODER_LIBMP3LAME,
  FF_ENCODER_LIBOPUS,
  FF_ENCODER_LIBVORBIS,
  type FFEncoderCodec,
} from "node-av/constants"
import {
  avChannelLayoutDefault,
  Codec,
  CodecContext,
  FormatContext,
  Frame,
  Packet,
  Rational,
} from "node-av/lib"
import wavefile from "wavefile"
import { pcmOf, wavOf } from "./WavFile.ts"

/** A sweep from 200 Hz upwards under a sine envelope, s16 mono. */
export const chirp = (samples: number, rateHz: number, amplitude = 12_000): Int16Array =>
  Int16Array.from({ length: samples }, (_, i) => {
    const t = i / rateHz
    const envelope = Math.sin((Math.PI * (i + 0.5)) / samples)
    return Math.round(amplitude * envelope * Math.sin(2 * Math.PI * (200 + 150 * t) * t))
  })

/** Mean of the squares, of samples in [-1, 1]. */
export const power = (samples: Float32Array): number => {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return sum / samples.length
}

export type WavDepth = "8" | "16" | "24" | "32" | "32f" | "64" | "8a" | "8m"

/** Mono WAV of one depth: u8, s16, s24, s32, f32, f64, A-law, mu-law. */
export const wavBytes = (samples: Int16Array, rateHz: number, depth: WavDepth): Uint8Array => {
  if (depth === "16") return wavOf(pcmOf(samples), rateHz)
  const wav = new wavefile.WaveFile()
  wav.fromScratch(1, rateHz, "16", samples)
  if (depth === "8a") wav.toALaw()
  else if (depth === "8m") wav.toMuLaw()
  else wav.toBitDepth(depth)
  return wav.toBuffer()
}

interface AvTarget {
  /** FFmpeg's names. */
  readonly format: string
  readonly codec: FFEncoderCodec
  readonly sampleFormat: AVSampleFormat
}

export const avTargets = {
  m4a: { format: "ipod", codec: FF_ENCODER_AAC, sampleFormat: AV_SAMPLE_FMT_FLTP },
  ogg: { format: "ogg", codec: FF_ENCODER_LIBVORBIS, sampleFormat: AV_SAMPLE_FMT_FLTP },
  flac: { format: "flac", codec: FF_ENCODER_FLAC, sampleFormat: AV_SAMPLE_FMT_S16 },
  webm: { format: "webm", codec: FF_ENCODER_LIBOPUS, sampleFormat: AV_SAMPLE_FMT_FLT },
  mp3: { format: "mp3", codec: FF_ENCODER_LIBMP3LAME, sampleFormat: AV_SAMPLE_FMT_FLTP },
} as const satisfies Record<string, AvTarget>

interface Stream {
  /** FFmpeg's names. */
  readonly format: string
  readonly codec: FFEncoderCodec
  readonly configure: (encoder: CodecContext) => void
  /** The frames to encode, once the encoder is open. */
  readonly frames: (encoder: CodecContext) => Iterable<Frame>
}

/** Writes a file with one stream. */
export const writeStream = (path: string, { codec: name, configure, format: kind, frames }: Stream): void => {
  const must = (status: number): number => {
    if (status < 0) throw new Error(`FFmpeg failed to write a ${kind} file (${status})`)
    return status
  }
  const codec = Codec.findEncoderByName(name)
  if (codec === null) throw new Error(`no encoder ${name}`)
  const encoder = new CodecContext()
  encoder.allocContext3(codec)
  configure(encoder)
  encoder.flags = AV_CODEC_FLAG_GLOBAL_HEADER
  must(encoder.open2Sync(codec, null))
  const format = new FormatContext()
  must(format.allocOutputContext2(null, kind, path))
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
  for (const frame of frames(encoder)) {
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

/** Encodes mono samples into a file. 48 kHz suits every target. */
export const writeWithAv = (path: string, samples: Int16Array, rateHz: number, target: AvTarget) =>
  writeStream(path, {
    ...target,
    configure: (encoder) => {
      encoder.sampleRate = rateHz
      encoder.sampleFormat = target.sampleFormat
      encoder.channelLayout = avChannelLayoutDefault(1)
      encoder.timeBase = new Rational(1, rateHz)
      encoder.bitRate = 96_000n
    },
    *frames({ frameSize }) {
      const frameSamples = frameSize === 0 ? 1024 : frameSize
      for (let at = 0; at < samples.length; at += frameSamples) {
        const piece = samples.slice(at, at + frameSamples)
        const floats = Float32Array.from(piece, (sample) => sample / 32_768)
        yield Frame.fromAudioBuffer(
          Buffer.from(target.sampleFormat === AV_SAMPLE_FMT_S16 ? piece.buffer : floats.buffer),
          {
            nbSamples: piece.length,
            format: target.sampleFormat,
            sampleRate: rateHz,
            channelLayout: avChannelLayoutDefault(1),
            pts: BigInt(at),
          },
        )
      }
    },
  })

export const writeWav = (path: string, samples: Int16Array, rateHz: number, depth: WavDepth = "16") =>
  writeFileSync(path, wavBytes(samples, rateHz, depth))
