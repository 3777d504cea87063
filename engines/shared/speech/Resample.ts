// Converts a whole clip from any integer sample rate to any other; at most `maxClipSeconds` of audio.
import { type FilterShape, PolyphaseFilter } from "#domain/audio/PolyphaseFilter.ts"

/** Aliases are below −80 dB (a test checks it). */
const shape: FilterShape = { halfCrossings: 16, beta: 9, rollOff: 0.9 }

/** `samples` at `fromHz` → the same sound at `toHz`; `ceil(length × toHz / fromHz)` samples. */
export const resample = (samples: Float32Array, fromHz: number, toHz: number): Float32Array => {
  if (fromHz === toHz) return samples
  const filter = new PolyphaseFilter(fromHz, toHz, shape)
  const out = new Float32Array(Math.ceil((samples.length * filter.up) / filter.down))
  for (let n = 0; n < out.length; n++) out[n] = filter.sampleAt(n, samples, 0)
  return out
}
