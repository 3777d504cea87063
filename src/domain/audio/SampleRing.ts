// Decoded audio on its way from a decoder process to an engine process: a file of fixed size in which sample i lies at
// place i mod its size. The decoder writes it, the engine reads it, the gateway says who may do so when and never sees a
// sample: passed through it, a minute of audio was 12 MB of messages, and nine full garbage collections a second held up
// everybody else's requests (measured). Pure; the files are opened by audio and engines.

/** f32, as `Float32Array` lies in memory: writer and reader are processes of one machine. */
const sampleBytes = Float32Array.BYTES_PER_ELEMENT

/**
 * Size of a ring, samples: 262 s at 16 kHz, 16 MiB. The most that waits in one is what an engine hears at once and the
 * window behind it (180 s and 30 s), and a chunk of the decoder's.
 */
export const RING_SAMPLES = 4 * 1024 * 1024

/** A ring and its size. */
export interface SampleRing {
  /** Absolute. */
  readonly path: string
  readonly ringSamples: number
}

/** Samples `from` to `from + count` of a file's audio, mono, in [-1, 1]. They stay in the ring until they are released. */
export interface SampleSpan extends SampleRing {
  readonly from: number
  readonly count: number
}

/** Where a span lies in its file: one stretch, or two where it goes over the end. */
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
