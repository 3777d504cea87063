// Where the speech of a clip begins and ends, by its energy. Pure.

/** Positions of samples. */
export interface SpeechSpan {
  readonly first: number
  readonly last: number
}

/** Frames of a second: 10 ms each. */
const framesPerSecond = 100
/** Quieter than the loudest frame by this factor (30 dB) is not speech. A guess: breath and reverberation lie below it. */
const quieter = 10 ** (30 / 20)

const energyOf = (samples: Int16Array): number => {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return samples.length === 0 ? 0 : Math.sqrt(sum / samples.length)
}

/** @returns undefined if the clip is silent */
export const speechSpan = (samples: Int16Array, rateHz: number): SpeechSpan | undefined => {
  const frame = Math.floor(rateHz / framesPerSecond)
  const energies = Array.from({ length: Math.ceil(samples.length / frame) }, (_, at) =>
    energyOf(samples.subarray(at * frame, (at + 1) * frame)),
  )
  const loudest = energies.reduce((most, energy) => Math.max(most, energy), 0)
  if (loudest === 0) return undefined
  const level = loudest / quieter
  const isSpeech = (energy: number) => energy > level
  const from = energies.findIndex(isSpeech) * frame
  const to = Math.min(samples.length, (energies.findLastIndex(isSpeech) + 1) * frame)
  let first = from
  while (Math.abs(samples[first]!) <= level) first++
  let last = to - 1
  while (Math.abs(samples[last]!) <= level) last--
  return { first, last }
}
