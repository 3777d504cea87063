// The messages between Decoder (gateway) and decoderMain (decoder process), over child-process IPC with advanced
// serialization, in order. A process decodes one sound or picture at a time, so a crash harms no other file.
import type { SampleRing } from "#domain/audio/SampleRing.ts"
import type { DecodedPicture, PictureRequest } from "#domain/pictures/PictureRequest.ts"

export interface DecodeLimits {
  /** Seconds of decoded audio; one sample more is `TooLong`. */
  readonly maxSeconds: number
  /** CPU time (user and system) of the decoding, ms. */
  readonly maxCpuMs: number
}

/** The ring for samples that do not go through the gateway. */
export interface RingRequest extends SampleRing {
  /** Samples skipped at the start. */
  readonly from: number
  /** The first sample that may not be written yet. */
  readonly until: number
}

export interface DecodeRequest {
  /** Absolute path. */
  readonly path: string
  /** Requested rate; the output is mono f32 at this rate. */
  readonly rateHz: number
  readonly limits: DecodeLimits
  /** Absent: the samples are sent in chunks. */
  readonly ring?: RingRequest
}

/** Facts about the source from its headers; never trusted for sizes. */
export interface DecodedInfo {
  readonly container: string
  readonly codec: string
  readonly sourceRateHz: number
  readonly channels: number
}

/** Totals of a decode, and the damage that was tolerated. */
export interface DecodedTotals {
  /** Samples at the requested rate. */
  readonly samples: number
  /** Read or decode errors that were skipped. */
  readonly damages: number
  readonly cpuMs: number
}

export type RejectReason =
  | "NotAudio"
  | "NoAudioTrack"
  | "UnsupportedCodec"
  | "UnsupportedLayout"
  | "TooLong"
  | "TooCostly"
  | "Empty"
  | "BadPicture"

/** What decodes in a decoder process. */
export type DecoderProgram =
  /** The FFmpeg of the package node-av, in the process itself. */
  | { readonly kind: "node-av" }
  /** The machine's `ffmpeg`: its absolute path, and its decoders among those that are used. */
  | { readonly kind: "ffmpeg"; readonly path: string; readonly decoders: ReadonlyArray<string> }

export type ToDecoder =
  | { readonly t: "decode"; readonly request: DecodeRequest }
  | { readonly t: "decode-picture"; readonly request: PictureRequest }
  /** The reader has taken one chunk; the process may send one more. */
  | { readonly t: "ack" }
  /** Samples before this one may be written to the ring. */
  | { readonly t: "allow"; readonly until: number }

export type FromDecoder =
  /** The native library is loaded, if one is needed. Sent once. */
  | { readonly t: "up" }
  /** The native library cannot be loaded; the process ends. */
  | { readonly t: "absent"; readonly detail: string }
  /** Sent before the first chunk. */
  | { readonly t: "info"; readonly info: DecodedInfo }
  | { readonly t: "chunk"; readonly samples: Float32Array }
  /** So many more samples lie in the ring. */
  | { readonly t: "written"; readonly samples: number }
  /** The ring cannot be written; `code` is the system's (e.g. ENOSPC). Ends the decode. */
  | { readonly t: "unwritable"; readonly code: string }
  | { readonly t: "end"; readonly totals: DecodedTotals }
  | { readonly t: "rejected"; readonly reason: RejectReason; readonly detail: string }
  | { readonly t: "picture"; readonly picture: DecodedPicture }

/** Chunks that may be sent without an acknowledgement. */
export const windowChunks = 4
/**
 * About 1 s at 16 kHz, 64 KB, which a pipe delivers in one piece. Receiving one costs the gateway's thread about 0.2 ms
 * (measured; twice the size cost more than twice the time).
 */
export const chunkSamples = 16_384
