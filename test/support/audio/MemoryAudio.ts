// A file's samples for the file transcriber, held in memory where the product has a ring: decoded in pieces, dropped
// once they are released, with a bounded number waiting.
import { Effect } from "effect"
import type { TranscriberAudio } from "#actors/jobs/FileTranscription.ts"
import type { TranscribeCall, TranscribeRequest } from "#engines/protocol/Transcription.ts"

export interface MemoryAudioOptions {
  /** Of the pieces, over and over; all at once without. */
  readonly sizes?: ReadonlyArray<number>
  /** Where an earlier run stopped. */
  readonly start?: number
  readonly atMostWaiting?: number
}

export const memoryAudio = (
  samples: Float32Array,
  { atMostWaiting = samples.length, sizes = [samples.length], start = 0 }: MemoryAudioOptions = {},
): TranscriberAudio<never> => {
  let decoded = start
  let released = start
  let turn = 0
  return {
    next: Effect.sync(() => {
      if (decoded - released > atMostWaiting) throw new Error(`${decoded - released} samples wait`)
      if (decoded >= samples.length) return undefined
      const count = Math.min(sizes[turn++ % sizes.length]!, samples.length - decoded)
      decoded += count
      return count
    }),
    atMostWaiting,
    span: (from, count) => {
      if (from < released || from + count > decoded)
        throw new Error(`${from} and ${count} more are not there`)
      return samples.subarray(from, from + count)
    },
    release: (before) => {
      released = before
    },
  }
}

/** A request whose samples are not in a ring. */
export const inMemory = ({ samples, ...rest }: TranscribeCall): TranscribeRequest => {
  if (!(samples instanceof Float32Array)) throw new Error("the samples are in a ring")
  return { ...rest, samples }
}
