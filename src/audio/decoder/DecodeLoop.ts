// Decodes an untrusted file to mono floats at one rate, in bounded memory. Runs in the decoder process only, where
// untrusted bytes reach native code. Damage inside a file is skipped; files of a wrong kind are refused with a reason.
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { AV_LOG_QUIET, AVERROR_EOF, AVMEDIA_TYPE_AUDIO } from "node-av/constants"
import {
  Codec,
  CodecContext,
  Dictionary,
  FormatContext,
  Frame,
  InputFormat,
  Log,
  Packet,
  type Stream,
} from "node-av/lib"
import { type Container, containerOf, type ReadAt } from "./Container.ts"
import type { DecodedInfo, DecodedTotals, DecodeRequest } from "./DecoderWire.ts"
import { checkLayout, MonoResampler, Rejected } from "./MonoResampler.ts"
import { declaredSamples } from "./Mp4Tables.ts"

/**
 * FFmpeg's names of the decoders that may process untrusted bytes: the codecs in practical use in the six containers.
 */
const CODECS = new Set([
  ..."mp3float mp3 aac alac vorbis opus flac adpcm_ima_wav adpcm_ms".split(" "),
  ..."u8 s8 s16le s16be s24le s24be s32le s32be f32le f32be f64le f64be alaw mulaw"
    .split(" ")
    .map((kind) => `pcm_${kind}`),
])
/** Failed reads after which the rest of a file is dropped; the part before is kept. */
const MAX_READ_ERRORS = 32
/** Longest time between two checks of the limits, at which messages are also received. */
const SLICE_MS = 20
/** A decoder holds 100 to 160 MB (measured). Far more means that a forged header made it allocate. */
const MAX_RSS_BYTES = 768 * 1024 * 1024
/** Limits of the demuxer's probing: bytes, and microseconds of audio. */
const PROBE_BYTES = 1 << 20
const ANALYZE_US = 5_000_000

export interface DecodeSink {
  readonly info: (info: DecodedInfo) => void
  /** Takes a chunk and may keep it. A returned promise is awaited, which is the back-pressure. */
  readonly emit: (samples: Float32Array) => Promise<void> | undefined
}

/** Refuses files that declare more samples than they have bytes: a sample takes at least one byte. */
const refuseEmptyPromises = (read: ReadAt, sizeBytes: number): void => {
  if (declaredSamples(read, sizeBytes) <= sizeBytes) return
  throw new Rejected("NotAudio", "The file's tables speak of more samples than it has bytes")
}

const containerAt = (path: string): Container => {
  const file = openSync(path, "r")
  try {
    if (fstatSync(file).size === 0) throw new Rejected("NotAudio", "The file is empty")
    const read = (offset: number, length: number) => {
      const bytes = new Uint8Array(length)
      return bytes.subarray(0, readSync(file, bytes, 0, length, offset))
    }
    const container = containerOf(read)
    if (container === "mov") refuseEmptyPromises(read, fstatSync(file).size)
    if (container !== undefined) return container
    throw new Rejected("NotAudio", "The file is not MP3, WAV, M4A, OGG, FLAC or WebM audio")
  } finally {
    closeSync(file)
  }
}

const openFormat = (path: string, container: Container): FormatContext => {
  const format = new FormatContext()
  const options = Dictionary.fromObject({
    protocol_whitelist: "file",
    format_whitelist: "wav,mp3,ogg,flac,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm",
    // Keeps the probe from opening unused decoders, such as a video's.
    codec_whitelist: [...CODECS].join(","),
    probesize: PROBE_BYTES,
    analyzeduration: ANALYZE_US,
  })
  try {
    const opened = format.openInputSync(`file:${path}`, InputFormat.findInputFormat(container), options)
    if (opened < 0) throw new Rejected("NotAudio", `The ${container} file is damaged beyond reading`)
    // Even if this fails, what the headers said is available and checked next.
    format.findStreamInfoSync(null)
    return format
  } catch (cause) {
    format.closeInputSync()
    throw cause
  } finally {
    options.free()
  }
}

const audioStream = (format: FormatContext): Stream => {
  const stream = format.streams.find((each) => each.codecpar.codecType === AVMEDIA_TYPE_AUDIO)
  if (stream === undefined) throw new Rejected("NoAudioTrack", "The file has no audio track")
  return stream
}

interface OpenCodec {
  readonly context: CodecContext
  readonly name: string
}

const openCodec = (stream: Stream): OpenCodec => {
  const codec = Codec.findDecoder(stream.codecpar.codecId)
  const name = codec?.name ?? "unknown"
  if (codec === null || !CODECS.has(name)) {
    throw new Rejected("UnsupportedCodec", `The audio codec (${name}) is not supported`)
  }
  checkLayout(stream.codecpar.sampleRate, stream.codecpar.channels)
  const context = new CodecContext()
  context.allocContext3(codec)
  context.parametersToContext(stream.codecpar)
  context.pktTimebase = stream.timeBase
  context.threadCount = 1
  if (context.open2Sync(codec, null) < 0) {
    context.freeContext()
    throw new Rejected("NotAudio", `The ${name} stream is damaged beyond reading`)
  }
  return { context, name }
}

const cpuClock = (): (() => number) => {
  const start = process.cpuUsage()
  return () => {
    const used = process.cpuUsage(start)
    return (used.user + used.system) / 1000
  }
}

/** Decodes the whole file. @throws Rejected */
export const decodeFile = async (request: DecodeRequest, sink: DecodeSink): Promise<DecodedTotals> => {
  Log.setLevel(AV_LOG_QUIET) // its messages quote metadata
  const cpuMs = cpuClock()
  const withinBudget = () => {
    if (cpuMs() > request.limits.maxCpuMs) {
      throw new Rejected("TooCostly", "The file takes too long to decode")
    }
    if (process.memoryUsage.rss() > MAX_RSS_BYTES) {
      throw new Rejected("TooCostly", "The file takes too much memory to decode")
    }
  }
  const maxSamples = Math.floor(request.limits.maxSeconds * request.rateHz)
  const output = new MonoResampler(request.rateHz, maxSamples, sink.emit)
  const container = containerAt(request.path)
  const format = openFormat(request.path, container)
  const packet = new Packet()
  const frame = new Frame()
  let codec: OpenCodec | undefined
  let damages = 0

  const drain = async (context: CodecContext) => {
    while (context.receiveFrameSync(frame) >= 0) {
      await output.push(frame)
      frame.unref()
    }
  }
  try {
    const stream = audioStream(format)
    codec = openCodec(stream)
    const { sampleRate: sourceRateHz, channels } = stream.codecpar
    sink.info({ container, codec: codec.name, sourceRateHz, channels })
    packet.alloc()
    frame.alloc()
    for (let sliceEndsAt = performance.now() + SLICE_MS, readErrors = 0; ; ) {
      const status = format.readFrameSync(packet)
      if (status === AVERROR_EOF) break
      if (status < 0) {
        damages++
        if (++readErrors > MAX_READ_ERRORS) break
        continue
      }
      if (packet.streamIndex === stream.index) {
        if (codec.context.sendPacketSync(packet) < 0) damages++
        await drain(codec.context)
      }
      packet.unref()
      if (performance.now() < sliceEndsAt) continue
      withinBudget()
      // Also lets Node free the native buffers of frames that were read.
      await new Promise(setImmediate)
      sliceEndsAt = performance.now() + SLICE_MS
    }
    codec.context.sendPacketSync(null)
    await drain(codec.context)
    await output.end()
    if (output.samples === 0) throw new Rejected("Empty", "The file holds no audio")
    return { samples: output.samples, damages, cpuMs: cpuMs() }
  } finally {
    output.free()
    codec?.context.freeContext()
    frame.free()
    packet.free()
    format.closeInputSync()
  }
}
