// A file's samples for the file transcriber, in memory instead of the product's ring: decoded in pieces, dropped when they are
// released. The number of unreleased samples is bounded.
import { Effect } from "effect"
import type { TranscriberAudio } from "#actors/jobs/FileTranscription.ts"
import type { TranscribeCall, TranscribeRequest } from "#engines/protocol/Transcription.ts"

interface MemoryAudioOptions {
  /** Sizes of the decoded pieces, repeated cyclically. Absent: one piece. */
  readonly sizes?: ReadonlyArray<number>
  /** First sample, where an earlier run stopped. */
  readonly start?: number
  readonly atMostWaiting?: number
}

export const memoryAudio = (
  samples: Float32Array,
  { atMostWaiting = samples.length, sizes = [samples.length], start = 0 }: MemoryAudioOptions = {},
): TranscriberAudio<never> => {
  let decoded = start
  let released = start
  let piece = 0
  return {
    next: Effect.sync(() => {
      if (decoded - released > atMostWaiting) throw new Error(`${decoded - released} samples wait`)
      if (decoded >= samples.length) return undefined
      const count = Math.min(sizes[piece++ % sizes.length]!, samples.length - decoded)
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

/** The request; throws if its samples are in a ring. */
export const inMemory = ({ samples, ...rest }: TranscribeCall): TranscribeRequest => {
  if (!(samples instanceof Float32Array)) throw new Error("the samples are in a ring")
  return { ...rest, samples }
}
