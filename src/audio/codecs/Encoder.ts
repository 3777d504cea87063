// What the pool hands out, and the two encoders that need no thread. Called by CodecPool; used by the speech
// handler. Bytes leave by a plain function call, because they go straight to a socket.

import { Deferred, Effect } from "effect"
import { type AudioFormat, s16ToBytes } from "#domain/audio/Audio.ts"
import { CodecFailed } from "../AudioErrors.ts"
import { WAV_MAX_SAMPLES, wavHeader } from "./Wav.ts"

export interface EncoderOptions {
  readonly format: AudioFormat
  /**
   * Called with every piece of the encoded stream, in order; never after the encoder's scope has closed. `samples` of
   * the input are in these bytes and in no earlier ones; their sum over a finished stream is the input's length.
   */
  readonly onBytes: (bytes: Uint8Array, samples: number) => void
}

export interface EncodedTotals {
  readonly samples: number
  readonly sizeBytes: number
}

export interface Encoder {
  /**
   * Hands in mono s16 samples at 24 kHz, which nobody may write to afterwards. Returns false when more is
   * outstanding than the window: what was pushed is kept, but wait for `ready` before pushing more.
   */
  readonly push: (samples: Int16Array) => boolean
  /** Completes when outstanding work is inside the window, at once if it is; fails when the encoder has failed. */
  readonly ready: Effect.Effect<void, CodecFailed>
  /** Never succeeds: fails when the encoder fails, to be raced against the producer. */
  readonly failed: Effect.Effect<never, CodecFailed>
  /** Ends the stream properly. Closing the scope without it is an abort: no end mark, no more bytes. */
  readonly finish: Effect.Effect<EncodedTotals, CodecFailed>
}

/** Samples as they are. */
export const pcmEncoder = (options: EncoderOptions): Encoder => {
  let samplesIn = 0
  return {
    push: (samples) => {
      samplesIn += samples.length
      if (samples.length > 0) options.onBytes(s16ToBytes(samples), samples.length)
      return true
    },
    ready: Effect.void,
    failed: Effect.never,
    finish: Effect.sync(() => ({ samples: samplesIn, sizeBytes: samplesIn * 2 })),
  }
}

/**
 * Holds all samples until the end, because the header tells their number. The header and then each piece are
 * handed out without joining them: nothing here is proportional to the length but the holding.
 */
export const wavEncoder = (options: EncoderOptions, rateHz: number, maxSamples: number): Encoder => {
  const limit = Math.min(maxSamples, WAV_MAX_SAMPLES)
  const tooLong = Deferred.makeUnsafe<never, CodecFailed>()
  let pieces: Array<Int16Array> = []
  let samplesIn = 0
  const check = Effect.suspend(() => (samplesIn <= limit ? Effect.void : Deferred.await(tooLong)))
  return {
    push: (samples) => {
      samplesIn += samples.length
      if (samplesIn <= limit) {
        if (samples.length > 0) pieces.push(samples)
        return true
      }
      pieces = []
      const detail = `more than ${limit} samples for one file`
      Deferred.doneUnsafe(tooLong, Effect.fail(new CodecFailed({ reason: "TooLong", detail })))
      return false
    },
    ready: check,
    failed: Deferred.await(tooLong),
    finish: Effect.map(check, () => {
      const header = wavHeader(samplesIn, rateHz)
      options.onBytes(header, 0)
      for (const piece of pieces) options.onBytes(s16ToBytes(piece), piece.length)
      return { samples: samplesIn, sizeBytes: header.length + samplesIn * 2 }
    }),
  }
}
