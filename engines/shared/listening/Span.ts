// Reads the samples of a span, which are in a file of the node.
import { closeSync, openSync, readSync } from "node:fs"
import { type SampleSpan, stretches } from "#domain/audio/SampleRing.ts"

/** The samples, f32, a new array of `span.count`. @throws if the file is gone or too short: the request was cancelled. */
export const readSpan = (span: SampleSpan): Float32Array => {
  const samples = new Float32Array(span.count)
  const bytes = new Uint8Array(samples.buffer)
  const file = openSync(span.path, "r")
  try {
    let at = 0
    for (const { offsetBytes, samples: count } of stretches(span, span.from, span.count)) {
      const length = count * Float32Array.BYTES_PER_ELEMENT
      if (readSync(file, bytes, at, length, offsetBytes) !== length) throw new Error("the audio ends early")
      at += length
    }
  } finally {
    closeSync(file)
  }
  return samples
}
