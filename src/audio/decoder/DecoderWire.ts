// The messages between Decoder (gateway) and decoderMain (decoder process), over child-process IPC with advanced
// serialization, in order. One decode at a time in a process: who crashes it harms nobody else.
import type { SampleRing } from "#domain/audio/SampleRing.ts"

export interface DecodeLimits {
  /** Seconds of decoded audio; one more sample is `TooLong`. */
  readonly maxSeconds: number
  /** CPU time (user and system) of the decoding, ms. */
  readonly maxCpuMs: number
}

/** Where decoded samples go that the gateway does not want to see. */
export interface RingRequest extends SampleRing {
  /** Samples passed over at the start. */
  readonly from: number
  /** The first sample that may not be written yet. */
  readonly until: number
}

export interface DecodeRequest {
  /** Absolute path. */
  readonly path: string
  /** Rate wanted; the output is mono f32 at this rate. */
  readonly rateHz: number
  readonly limits: DecodeLimits
  /** Absent: they come in chunks. */
  readonly ring?: RingRequest
}

/** Facts about the source, from its headers and never trusted for sizes. */
export interface DecodedInfo {
  readonly container: string
  readonly codec: string
  readonly sourceRateHz: number
  readonly channels: number
}

/** What was tolerated on the way. */
export interface DecodedTotals {
  /** Samples at the rate asked for. */
  readonly samples: number
  /** Read or decode errors that were passed over. */
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

export type ToDecoder =
  | { readonly t: "decode"; readonly request: DecodeRequest }
  /** One chunk was taken; the process may send one more. */
  | { readonly t: "ack" }
  /** Samples before this one may be written to the ring. */
  | { readonly t: "room"; readonly until: number }

export type FromDecoder =
  /** The native library is loaded; sent once. */
  | { readonly t: "up" }
  /** Before the first chunk. */
  | { readonly t: "info"; readonly info: DecodedInfo }
  | { readonly t: "chunk"; readonly samples: Float32Array }
  /** So many more lie in the ring. */
  | { readonly t: "written"; readonly samples: number }
  /** The ring cannot be written; `code` is the system's (ENOSPC). Ends the decode. */
  | { readonly t: "unwritable"; readonly code: string }
  | { readonly t: "end"; readonly totals: DecodedTotals }
  | { readonly t: "rejected"; readonly reason: RejectReason; readonly detail: string }

/** Chunks that may be on their way without an acknowledgement. */
export const WINDOW_CHUNKS = 4
/**
 * About 1 s at 16 kHz, 64 KB: what a pipe delivers in one piece. Taking one costs the gateway's thread about 0.2 ms
 * (measured; twice the size cost more than twice the time).
 */
export const CHUNK_SAMPLES = 16_384
