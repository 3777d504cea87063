// Speech for the measurement of turns: the sentences of models/eval one by one, whose voices and sentences the voice-activity detector
// was not trained with, made louder or quieter, noisy, and echoing. 16 kHz s16.
import { Effect } from "effect"
import { RandomNumbers } from "../../models/eval/Conditions.ts"
import { evaluationSet, recordingSamples } from "../../models/eval/EvaluationSet.ts"
import { rateHz } from "./Sounds.ts"

/** Sounding means more than 30 dB below the peak. */
const audibleShare = 0.03

/** From the first to the last audible sample, peak 1. */
export const audible = (said: Int16Array): Float32Array => {
  const peak = said.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1)
  const isAudible = (sample: number) => Math.abs(sample) > peak * audibleShare
  const within = said.subarray(said.findIndex(isAudible), said.findLastIndex(isAudible) + 1)
  return Float32Array.from(within, (sample) => sample / peak)
}

/** Each sentence from its first to its last audible sample, peak 1. */
export const sentences = Effect.map(
  Effect.forEach(evaluationSet.speech, (recording) =>
    Effect.map(recordingSamples(recording), (samples) =>
      recording.segments.map(({ end, start }) => {
        const said = samples.subarray(Math.floor((start - 0.05) * rateHz), Math.floor((end + 0.05) * rateHz))
        return audible(said)
      }),
    ),
  ),
  (all) => all.flat(),
)

export const s16 = (samples: Float32Array): Int16Array =>
  Int16Array.from(samples, (sample) => Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_767))))

const rms = (samples: Float32Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length)

interface Spoken {
  readonly samples: Int16Array
  /** Positions of the first and behind the last audible sample. */
  readonly from: number
  readonly to: number
}

/** A sentence with silence before and behind, at some loudness; `decibels` over white noise, or without noise. */
export const spoken = (said: Float32Array, decibels: number | undefined, seed: number): Spoken => {
  const random = new RandomNumbers(seed)
  const from = rateHz + Math.floor(random.between(0, 400))
  const loud = 10 ** (-random.between(1, 24) / 20)
  const noise = decibels === undefined ? 0 : rms(said) / 10 ** (decibels / 20)
  const samples = new Float32Array(from + said.length + 1.5 * rateHz)
  samples.set(said, from)
  return {
    samples: s16(samples.map((sample) => (sample + random.normal() * noise) * loud)),
    from,
    to: from + said.length,
  }
}

/** Some seconds of sentences one after the other. */
export const answer = (all: ReadonlyArray<Float32Array>, seed: number, seconds = 4): Float32Array => {
  const samples = new Float32Array(seconds * rateHz)
  for (let at = 0, i = seed; at < samples.length; i++) {
    const said = all[i % all.length]!.subarray(0, samples.length - at)
    samples.set(said, at)
    at += said.length + 0.2 * rateHz
  }
  return samples.map((sample) => sample * 0.7)
}

/** What a microphone hears of an answer: late, with the reflections of a small room, and distorted by a small loudspeaker. */
export const echoOf = (played: Float32Array, decibels: number, seed: number) => {
  const random = new RandomNumbers(seed)
  const delay = Math.floor(random.between(0, 0.5) * rateHz)
  const room = random.between(0.05, 0.25)
  const taps: Array<readonly [number, number]> = [[0, 1]]
  for (let i = 0; i < 60; i++) {
    const late = random.between(0.002, room)
    taps.push([Math.round(late * rateHz), random.normal() * 0.25 * Math.exp((-4 * late) / room)])
  }
  const drive = random.between(0.5, 2)
  const level = 10 ** (decibels / 20)
  const heard = new Float32Array(played.length + rateHz)
  const bent = played.map((sample) => (Math.tanh(drive * sample) / drive) * level)
  for (const [late, share] of taps) {
    for (let i = 0; i < bent.length; i++) heard[delay + late + i]! += share * bent[i]!
  }
  return { heard: heard.map((sample) => sample + random.normal() * 1e-4), delay }
}
