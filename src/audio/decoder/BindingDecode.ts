// Decodes an untrusted file to mono floats at one rate, in bounded memory, with the FFmpeg of the package node-av. Runs
// in the decoder process only, where untrusted bytes reach native code. Damage inside a file is skipped; files of a wrong kind are refused with a reason.
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
import type { Container } from "./Container.ts"
import {
  allowedDecoders,
  containerAt,
  type DecodeFile,
  inputOptions,
  maxRssBytes,
  sliceMs,
} from "./DecodeInput.ts"
import { MonoResampler } from "./MonoResampler.ts"
import {
  checkLayout,
  damaged,
  empty,
  noAudioTrack,
  tooMuchMemory,
  tooMuchTime,
  unsupportedCodec,
} from "./Rejected.ts"
import { SampleChunks } from "./SampleChunks.ts"

/** Failed reads after which the rest of a file is dropped; the part before is kept. */
const maxReadErrors = 32

const openFormat = (path: string, container: Container): FormatContext => {
  const format = new FormatContext()
  const options = Dictionary.fromObject(inputOptions(allowedDecoders))
  try {
    const opened = format.openInputSync(`file:${path}`, InputFormat.findInputFormat(container), options)
    if (opened < 0) throw damaged(`${container} file`)
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
  if (stream === undefined) throw noAudioTrack()
  return stream
}

interface OpenCodec {
  readonly context: CodecContext
  readonly name: string
}

const openCodec = (stream: Stream): OpenCodec => {
  const codec = Codec.findDecoder(stream.codecpar.codecId)
  const name = codec?.name ?? "unknown"
  if (codec === null || !allowedDecoders.has(name)) throw unsupportedCodec(name)
  checkLayout(stream.codecpar.sampleRate, stream.codecpar.channels)
  const context = new CodecContext()
  context.allocContext3(codec)
  context.parametersToContext(stream.codecpar)
  context.pktTimebase = stream.timeBase
  context.threadCount = 1
  if (context.open2Sync(codec, null) < 0) {
    context.freeContext()
    throw damaged(`${name} stream`)
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

export const decodeFile: DecodeFile = async (request, sink) => {
  Log.setLevel(AV_LOG_QUIET) // its messages quote metadata
  const cpuMs = cpuClock()
  const withinBudget = () => {
    if (cpuMs() > request.limits.maxCpuMs) throw tooMuchTime()
    if (process.memoryUsage.rss() > maxRssBytes) throw tooMuchMemory()
  }
  const chunks = new SampleChunks(
    { rateHz: request.rateHz, maxSeconds: request.limits.maxSeconds },
    sink.emit,
  )
  const output = new MonoResampler(request.rateHz, chunks)
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
    for (let sliceEndsAt = performance.now() + sliceMs, readErrors = 0; ; ) {
      const status = format.readFrameSync(packet)
      if (status === AVERROR_EOF) break
      if (status < 0) {
        damages++
        if (++readErrors > maxReadErrors) break
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
      sliceEndsAt = performance.now() + sliceMs
    }
    codec.context.sendPacketSync(null)
    await drain(codec.context)
    await output.flush()
    await chunks.end()
    if (chunks.samples === 0) throw empty()
    return { samples: chunks.samples, damages, cpuMs: cpuMs() }
  } finally {
    output.free()
    codec?.context.freeContext()
    frame.free()
    packet.free()
    format.closeInputSync()
  }
}
