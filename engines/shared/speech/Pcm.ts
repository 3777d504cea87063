// One piece's waveform → 16-bit samples that join the neighbouring pieces without a click. Pure; no state between
// pieces, so pieces may be made in any order with the same result.
import type { Pause } from "./Pieces.ts"

/** Largest peak of the output: −1 dBFS, because lossy codecs overshoot. */
export const ceiling = 10 ** (-1 / 20)

/**
 * Milliseconds of silence after a piece at speed 1. The demonstration voices pause about 330 ms after a sentence
 * and 170 ms after a comma inside one piece (measured); the 60 ms that trimming leaves are already subtracted.
 */
const pauseMs: Readonly<Record<Pause, number>> = { sentence: 270, clause: 190, comma: 110, none: 0 }

/** Speech starts and ends where a 5 ms frame exceeds −42 dB of the piece's peak, or −54 dBFS (both measured). */
const frameMs = 5
const relativeFloor = 10 ** (-42 / 20)
const absoluteFloor = 10 ** (-54 / 20)

/**
 * Milliseconds kept before and after speech at speed 1: soft onsets ("h") and the decay of a final vowel are below the
 * threshold. They scale with speed as all speech does: kept at 60 ms, a short sentence at speed 4 was 11 % too long
 * (measured).
 */
const leadMs = 20
const tailMs = 40
const fadeInMs = 5
const fadeOutMs = 15

/** Pole of the DC blocker: −3 dB near 19 Hz at 24 kHz, far under the lowest voice. */
const dcPole = 0.995

/** Number of silent samples between two pieces. */
export const pauseSamples = (pause: Pause, speed: number, rateHz: number): number =>
  Math.round((pauseMs[pause] * rateHz) / 1000 / speed)

/** Speech of one piece. */
export interface PiecePcm {
  readonly samples: Int16Array
  /** Samples of the model's waveform that were left out before them. */
  readonly from: number
}

/**
 * `wave`: f32 mono of speech at `speed`, any level. Returns s16 of at most −1 dBFS, trimmed, with faded edges. Undefined
 * if a sample is not finite: the model's output is invalid and must not be played.
 */
export const trimmedPcm = (wave: Float32Array, rateHz: number, speed = 1): PiecePcm | undefined => {
  const flat = withoutDc(wave)
  const peak = peakOf(flat)
  if (peak === undefined) return undefined
  const { start, end } = speechBounds(flat, peak, rateHz, speed)
  const speech = flat.subarray(start, end)
  fadeEdges(speech, rateHz)
  // A piece above the ceiling is attenuated as a whole: no distortion, and the level depends on the piece alone.
  const gain = 32767 * Math.min(1, ceiling / (peakOf(speech) ?? ceiling))
  const out = new Int16Array(speech.length)
  for (let i = 0; i < out.length; i++) out[i] = Math.round(speech[i]! * gain)
  return { samples: out, from: start }
}

const fadeEdges = (speech: Float32Array, rateHz: number): void => {
  const fadeIn = Math.min(speech.length >> 1, Math.round((fadeInMs * rateHz) / 1000))
  const fadeOut = Math.min(speech.length >> 1, Math.round((fadeOutMs * rateHz) / 1000))
  // Raised cosine: the slope is zero at both ends of a fade.
  for (let i = 0; i < fadeIn; i++) speech[i]! *= (1 - Math.cos((Math.PI * i) / fadeIn)) / 2
  for (let i = 0; i < fadeOut; i++)
    speech[speech.length - 1 - i]! *= (1 - Math.cos((Math.PI * i) / fadeOut)) / 2
}

const withoutDc = (wave: Float32Array): Float32Array => {
  const out = new Float32Array(wave.length)
  let last = 0
  let state = 0
  for (let i = 0; i < wave.length; i++) {
    const sample = wave[i]!
    state = sample - last + dcPole * state
    last = sample
    out[i] = state
  }
  return out
}

const peakOf = (wave: Float32Array): number | undefined => {
  let peak = 0
  for (let i = 0; i < wave.length; i++) {
    const size = Math.abs(wave[i]!)
    // Written so that NaN fails the comparison too.
    if (!(size <= Number.MAX_VALUE)) return undefined
    if (size > peak) peak = size
  }
  return peak
}

/** Bounds of the speech; the whole piece if no frame is loud enough. */
const speechBounds = (
  wave: Float32Array,
  peak: number,
  rateHz: number,
  speed: number,
): { readonly start: number; readonly end: number } => {
  const frame = Math.max(1, Math.round((frameMs * rateHz) / 1000))
  const floor = Math.max(peak * relativeFloor, absoluteFloor)
  const loud = (at: number): boolean => {
    const end = Math.min(at + frame, wave.length)
    let energy = 0
    for (let i = at; i < end; i++) energy += wave[i]! * wave[i]!
    return energy > floor * floor * (end - at)
  }
  let first = 0
  while (first < wave.length && !loud(first)) first += frame
  if (first >= wave.length) return { start: 0, end: wave.length }
  let last = Math.floor((wave.length - 1) / frame) * frame
  while (last > first && !loud(last)) last -= frame
  return {
    start: Math.max(0, first - Math.round((leadMs * rateHz) / 1000 / speed)),
    end: Math.min(wave.length, last + frame + Math.round((tailMs * rateHz) / 1000 / speed)),
  }
}
