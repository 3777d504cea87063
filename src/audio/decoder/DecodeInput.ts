// What both decoders do alike: they recognise the file before FFmpeg reads it, and restrict FFmpeg to the containers and
// codecs in practical use.
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { type Container, containerOf, type ReadAt } from "./Container.ts"
import type { DecodedInfo, DecodedTotals, DecodeRequest } from "./DecoderWire.ts"
import { declaredSamples } from "./Mp4Tables.ts"
import { Rejected } from "./Rejected.ts"

/** FFmpeg's names of the decoders that may process untrusted bytes: the codecs in practical use in the six containers. */
export const allowedDecoders: ReadonlySet<string> = new Set([
  ..."mp3float mp3 aac alac vorbis opus flac adpcm_ima_wav adpcm_ms".split(" "),
  ..."u8 s8 s16le s16be s24le s24be s32le s32be f32le f32be f64le f64be alaw mulaw"
    .split(" ")
    .map((kind) => `pcm_${kind}`),
])

/** Limits of the demuxer's probing: bytes, and microseconds of audio. */
const probeBytes = 1 << 20
const analyzeUs = 5_000_000

/**
 * Options of FFmpeg's demuxer. The path is read as a file: FFmpeg 5.1 cannot seek in a descriptor, and an MP4 file may
 * have its tables at the end. No demuxer of the list opens other files by itself.
 */
export const inputOptions = (decoders: ReadonlySet<string>) => ({
  protocol_whitelist: "file",
  format_whitelist: "wav,mp3,ogg,flac,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm",
  // Keeps the probe from opening unused decoders, such as a video's.
  codec_whitelist: [...decoders].join(","),
  probesize: probeBytes,
  analyzeduration: analyzeUs,
})

/** Longest time between two checks of the limits, at which messages are also received. */
export const sliceMs = 20
/** A decoder holds 100 to 160 MB (measured). Far more means that a forged header made it allocate. */
export const maxRssBytes = 768 * 1024 * 1024

export interface DecodeSink {
  readonly info: (info: DecodedInfo) => void
  /** Takes a chunk and may keep it. A returned promise is awaited, which is the back-pressure. */
  readonly emit: (samples: Float32Array) => Promise<void> | undefined
}

/** Decodes a whole file. Fails with `Rejected`. */
export type DecodeFile = (request: DecodeRequest, sink: DecodeSink) => Promise<DecodedTotals>

/** Refuses files that declare more samples than they have bytes: a sample takes at least one byte. */
const refuseEmptyPromises = (read: ReadAt, sizeBytes: number): void => {
  if (declaredSamples(read, sizeBytes) <= sizeBytes) return
  throw new Rejected("NotAudio", "The file's tables speak of more samples than it has bytes")
}

/** @throws Rejected */
export const containerAt = (path: string): Container => {
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
