// The messages between Decoder (gateway) and decoderMain (decoder process), over child-process IPC with advanced
// serialization, in order. One decode at a time in a process: who crashes it harms nobody else.

export interface DecodeLimits {
  /** Seconds of decoded audio; one more sample is `TooLong`. */
  readonly maxSeconds: number
  /** CPU time (user and system) of the decoding, ms. */
  readonly maxCpuMs: number
}

export interface DecodeRequest {
  /** Absolute path. */
  readonly path: string
  /** Rate wanted; the output is mono f32 at this rate. */
  readonly rateHz: number
  readonly limits: DecodeLimits
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

export type FromDecoder =
  /** The native library is loaded; sent once. */
  | { readonly t: "up" }
  /** Before the first chunk. */
  | { readonly t: "info"; readonly info: DecodedInfo }
  | { readonly t: "chunk"; readonly samples: Float32Array }
  | { readonly t: "end"; readonly totals: DecodedTotals }
  | { readonly t: "rejected"; readonly reason: RejectReason; readonly detail: string }

/** Chunks that may be on their way without an acknowledgement. */
export const WINDOW_CHUNKS = 4
/**
 * About 1 s at 16 kHz, 64 KB: what a pipe delivers in one piece. Taking one costs the gateway's thread about 0.2 ms
 * (measured; twice the size cost more than twice the time).
 */
export const CHUNK_SAMPLES = 16_384
