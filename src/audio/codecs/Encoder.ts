// The interface of an encoder, and the two encoders that need no thread. Bytes are delivered by a plain function call,
// because they go straight to a socket.

import { Deferred, Effect } from "effect"
import { type AudioFormat, s16ToBytes } from "#domain/audio/Audio.ts"
import { CodecFailed } from "../AudioErrors.ts"
import { wavHeader, wavMaxSamples } from "./Wav.ts"

export interface EncoderOptions {
  readonly format: AudioFormat
  /**
   * Called with every piece of the encoded stream, in order, never after the encoder's scope has closed. `samples` is
   * the number of input samples in these bytes and in no earlier ones; their sum over a finished stream is the input's
   * length.
   */
  readonly onBytes: (bytes: Uint8Array, samples: number) => void
}

export interface EncodedTotals {
  readonly samples: number
  readonly sizeBytes: number
}

export interface Encoder {
  /**
   * Takes mono s16 samples at 24 kHz, which must not be changed afterwards. False if more than the window is queued:
   * the samples are kept, but wait for `ready` before pushing more.
   */
  readonly push: (samples: Int16Array) => boolean
  /** Completes when the queued audio is within the window, at once if it is. Fails when the encoder has failed. */
  readonly ready: Effect.Effect<void, CodecFailed>
  /** Fails when the encoder fails and never succeeds; to be raced with the producer. */
  readonly failed: Effect.Effect<never, CodecFailed>
  /** Ends the stream properly. Closing the scope without it aborts: no end mark, no more bytes. */
  readonly finish: Effect.Effect<EncodedTotals, CodecFailed>
}

/** Delivers the samples unchanged. */
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
 * Holds all samples until the end, because the header contains their number. Header and pieces are delivered without
 * joining them.
 */
export const wavEncoder = (options: EncoderOptions, rateHz: number, maxSamples: number): Encoder => {
  const limit = Math.min(maxSamples, wavMaxSamples)
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
