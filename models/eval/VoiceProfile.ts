// Measures of a voice, for comparing voices: pitch, shape of the mean spectrum, loudness, and artefacts of its
// samples. Pure except for the features, which are computed by the Whisper engine.
import { Effect } from "effect"
import * as LogMel from "#engines/shared/listening/LogMel.ts"

export const profileRateHz = 16_000
const hop = 160
const bandCount = 80
/** Lags of 60 to 400 Hz. */
const lags = { shortest: 40, longest: 266 }
const frameSamples = 640

export interface VoiceProfile {
  /** Median over voiced frames. */
  readonly pitchHz: number
  /** Mean over voiced frames, dB by mel band, minus its own mean, so that loudness has no influence. */
  readonly envelope: ReadonlyArray<number>
}

/** Correlation of a frame with itself `lag` samples later: 1 is periodic. */
const correlation = (samples: Float32Array, start: number, lag: number): number => {
  let [cross, firstPower, secondPower] = [0, 0, 0]
  for (let i = start; i < start + frameSamples; i += 2) {
    const [a, b] = [samples[i]!, samples[i + lag]!]
    cross += a * b
    firstPower += a * a
    secondPower += b * b
  }
  return cross / Math.sqrt(firstPower * secondPower + 1e-12)
}

/** The shortest lag whose correlation has a peak near the best one: a longer one is an octave too low. */
const lagOf = (
  samples: Float32Array,
  start: number,
  shortest: number,
  longest: number,
): number | undefined => {
  const correlations = Array.from({ length: longest - shortest + 1 }, (_, i) =>
    correlation(samples, start, shortest + i),
  )
  const best = Math.max(...correlations)
  if (best < 0.7) return undefined
  const at = correlations.findIndex(
    (value, i) =>
      value >= 0.92 * best && value >= (correlations[i - 1] ?? -1) && value >= (correlations[i + 1] ?? -1),
  )
  return shortest + at
}

const medianOf = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

interface Voiced {
  readonly start: number
  readonly lag: number
}

/** Loud, periodic frames, selected twice: 60 to 400 Hz, then 0.6 to 1.7 times the first median, to avoid octave errors. */
const voicedFrames = (samples: Float32Array): ReadonlyArray<Voiced> => {
  const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
  const starts: Array<number> = []
  for (let at = 0; at + frameSamples + lags.longest < samples.length; at += 2 * hop) {
    let peak = 0
    for (let i = at; i < at + frameSamples; i += 4) peak = Math.max(peak, Math.abs(samples[i]!))
    if (peak > 0.15 * loudest) starts.push(at)
  }
  const within = (shortest: number, longest: number) =>
    starts.flatMap((start) => {
      const lag = lagOf(samples, start, shortest, longest)
      return lag === undefined ? [] : [{ start, lag }]
    })
  const first = medianOf(within(lags.shortest, lags.longest).map(({ lag }) => lag))
  return within(
    Math.max(lags.shortest, Math.floor(first / 1.7)),
    Math.min(lags.longest, Math.ceil(first / 0.6)),
  )
}

/** @param samples f32 mono at profileRateHz */
export const profileOf = Effect.fnUntraced(function* (samples: Float32Array) {
  const options = { melBins: bandCount, fftSize: 400, hopSamples: hop, rateHz: profileRateHz }
  const { compute } = yield* LogMel.make(options)
  const frames = Math.floor(samples.length / hop)
  const features = compute(samples, frames)
  const voiced = voicedFrames(samples)
  const centres = voiced.map(({ start }) =>
    Math.min(frames - 1, Math.round((start + frameSamples / 2) / hop)),
  )
  // (log10 + 4) / 4 back to dB.
  const decibels = (band: number, frame: number) => 40 * features[band * frames + frame]! - 40
  const mean = Array.from(
    { length: bandCount },
    (_, band) => centres.reduce((sum, frame) => sum + decibels(band, frame), 0) / centres.length,
  )
  const level = mean.reduce((sum, value) => sum + value, 0) / bandCount
  const envelope = mean.map((value) => value - level)
  const pitchHz = profileRateHz / medianOf(voiced.map(({ lag }) => lag))
  return { pitchHz, envelope } satisfies VoiceProfile
})

/** Semitones between two pitches. */
export const pitchDistance = (a: VoiceProfile, b: VoiceProfile): number =>
  12 * Math.abs(Math.log2(a.pitchHz / b.pitchHz))

/** Mean difference of the envelopes, dB. */
export const timbreDistance = (a: VoiceProfile, b: VoiceProfile): number =>
  a.envelope.reduce((sum, value, band) => sum + Math.abs(value - (b.envelope[band] ?? 0)), 0) / bandCount

interface Cleanness {
  readonly peakDbfs: number
  /** Mean, as a share of full scale. */
  readonly dc: number
  /** Mean power without pauses, dBFS. */
  readonly loudnessDbfs: number
  /** The larger of the first and the last sample, as a share of full scale: audible as a click. */
  readonly edge: number
}

/** @param samples s16 mono */
export const cleannessOf = (samples: Int16Array): Cleanness => {
  let [peak, sum] = [0, 0]
  for (const sample of samples) {
    peak = Math.max(peak, Math.abs(sample))
    sum += sample
  }
  const block = 480 // 20 ms at 24 kHz
  const powers: Array<number> = []
  for (let at = 0; at + block <= samples.length; at += block) {
    let power = 0
    for (let i = at; i < at + block; i++) power += (samples[i]! / 32_768) ** 2
    powers.push(power / block)
  }
  const loudest = Math.max(...powers)
  const spoken = powers.filter((power) => power > loudest / 1000)
  const mean = spoken.reduce((all, power) => all + power, 0) / spoken.length
  return {
    peakDbfs: 20 * Math.log10(peak / 32_768),
    dc: Math.abs(sum / samples.length) / 32_768,
    loudnessDbfs: 10 * Math.log10(mean),
    edge: Math.max(Math.abs(samples[0] ?? 0), Math.abs(samples.at(-1) ?? 0)) / 32_768,
  }
}
