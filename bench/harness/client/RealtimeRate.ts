// Clips at the rate of the realtime protocol's audio.
import { listenRateHz } from "#domain/audio/Audio.ts"
import { PolyphaseFilter } from "#domain/audio/PolyphaseFilter.ts"

/** Rate of the realtime protocol's audio. */
export const realtimeHz = 24_000
/** Rate of clips. */
export const listenHz = listenRateHz
const filter = new PolyphaseFilter(listenHz, realtimeHz, { halfCrossings: 16, beta: 8, rollOff: 0.92 })

/** Clips at the higher rate, each computed once. */
const resampled = new WeakMap<Int16Array, Int16Array>()

export const atRealtimeRate = (samples: Int16Array): Int16Array => {
  const known = resampled.get(samples)
  if (known !== undefined) return known
  const out = new Int16Array(Math.floor((samples.length * realtimeHz) / listenHz))
  for (let at = 0; at < out.length; at++) {
    out[at] = Math.max(-32_768, Math.min(32_767, Math.round(filter.sampleAt(at, samples, 0))))
  }
  resampled.set(samples, out)
  return out
}
