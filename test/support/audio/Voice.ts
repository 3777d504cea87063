// Someone speaks, for tests of turns: the evaluation clips of the built-in recogniser, without the silence around them.
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { clips } from "../clients/LiveClient.ts"

const heardRateHz = 16_000
/** Below -40 dBFS is silence. */
const audible = 328

const trimmed = (samples: Int16Array): Int16Array => {
  const isAudible = (sample: number) => Math.abs(sample) > audible
  return samples.subarray(samples.findIndex(isAudible), samples.findLastIndex(isAudible) + 1)
}

/** Seconds of speech with the pauses of speech, s16 mono; the same for the same seed. The rate is 16 or 24 kHz. */
export const voice = (seconds: number, seed = 1, rateHz: 16_000 | 24_000 = 24_000): Buffer => {
  const length = Math.round(seconds * heardRateHz)
  const samples = new Int16Array(length)
  for (let at = 0, i = seed; at < length; i++) {
    const clip = trimmed(bytesToS16(clips[i % clips.length]!)).subarray(0, length - at)
    samples.set(clip, at)
    at += clip.length
  }
  const out = rateHz === heardRateHz ? samples : new Resampler(heardRateHz, rateHz).push(samples)
  const padded = new Int16Array(Math.round(seconds * rateHz))
  padded.set(out.subarray(0, padded.length))
  return Buffer.from(s16ToBytes(padded))
}
