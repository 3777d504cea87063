// The ring buffer for decoded audio between a decoder process and an engine process: a file of fixed size in which
// sample i is at position i mod its size. The decoder writes, the engine reads, and the gateway only tells both how far
// they may go. When samples went through the gateway, a minute of audio was 12 MB of messages, and nine full garbage
// collections a second delayed all other requests (measured). Pure; audio and engines open the files.

/** f32 as in a `Float32Array`; writer and reader run on the same machine. */
const sampleBytes = Float32Array.BYTES_PER_ELEMENT

/**
 * Size of a ring, samples: 262 s at 16 kHz, 16 MiB. It holds the longest input of an engine call and the window after
 * it (180 s and 30 s), and a chunk of the decoder's.
 */
export const ringCapacity = 4 * 1024 * 1024

/** A ring and its size. */
export interface SampleRing {
  /** Absolute. */
  readonly path: string
  readonly ringSamples: number
}

/**
 * Samples `from` to `from + count` of a file's audio, mono, in [-1, 1]. They stay in the ring until they are released.
 */
export interface SampleSpan extends SampleRing {
  readonly from: number
  readonly count: number
}

/** Positions of a span in its file: one range, or two if it wraps around. */
export const stretches = (
  { ringSamples }: Pick<SampleRing, "ringSamples">,
  from: number,
  count: number,
): ReadonlyArray<{ readonly offsetBytes: number; readonly samples: number }> => {
  const at = from % ringSamples
  const first = Math.min(count, ringSamples - at)
  const head = { offsetBytes: at * sampleBytes, samples: first }
  return first === count ? [head] : [head, { offsetBytes: 0, samples: count - first }]
}
