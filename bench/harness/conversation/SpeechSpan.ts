// Where the speech of a clip begins and ends, by its energy. Pure.

/** Positions of samples. */
export interface SpeechSpan {
  readonly first: number
  readonly last: number
}

/** Frames of a second: 10 ms each. */
const framesPerSecond = 100
/** Quieter than the loudest frame by this factor (40 dB) is not speech. A guess: weak consonants at the end of a word lie above it. */
const quieter = 10 ** (40 / 20)
/** Neither is what is not louder than the recording's own noise by this factor (10 dB). A guess. */
const overNoise = 10 ** (10 / 20)
/** Share of the frames that are noise: the quietest. A guess: pauses take more than that of any recording. */
const noiseShare = 0.05

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
  const noise = energies.toSorted((a, b) => a - b)[Math.floor(noiseShare * energies.length)]!
  // A recording without pauses has no noise to be told from its speech.
  const level = Math.max(loudest / quieter, Math.min(noise * overNoise, loudest / overNoise))
  const isSpeech = (energy: number) => energy > level
  const from = energies.findIndex(isSpeech) * frame
  const to = Math.min(samples.length, (energies.findLastIndex(isSpeech) + 1) * frame)
  let first = from
  while (Math.abs(samples[first]!) <= level) first++
  let last = to - 1
  while (Math.abs(samples[last]!) <= level) last--
  return { first, last }
}
