// Checks the reference clip of a caller whose voice is to be cloned, and makes of it the input of the model's encoder: float samples at
// the encoder's rate, trimmed and of limited length. Both adapters that clone voices use it (engines/clone and engines/chatterbox).
// Callers read the texts of the problems.
import { resample } from "./Resample.ts"

/** Seconds. Longer clips add cost and no likeness: the style is a mean over time, measured on clips of 6 s. */
export const maxClipSeconds = 12
/** Seconds. Half a second has hardly a syllable; the model's card recommends two seconds. */
const minClipSeconds = 0.5
/** −50 dBFS: below it a clip has only background noise. A guess. */
const silentPeak = 10 ** (-50 / 20)
/** Edges below −40 dB of the clip's peak are silence. A guess. */
const edgeFloor = 10 ** (-40 / 20)
/** Sample rates in use, Hz: telephone to studio. */
const rates = { min: 4000, max: 192_000 }

/** The usable part of a clip, or what is wrong with it. */
type Checked = { readonly speech: Int16Array; readonly rateHz: number } | { readonly problem: string }

/** Checks and trims `clip`, s16 mono at `rateHz`. Cheap, so that a bad clip is refused before the reply begins. */
export const checkClip = (clip: Int16Array, rateHz: number): Checked => {
  if (!(Number.isInteger(rateHz) && rateHz >= rates.min && rateHz <= rates.max)) {
    return { problem: `the reference clip has a sample rate of ${rateHz} Hz` }
  }
  let peak = 0
  for (const sample of clip) peak = Math.max(peak, Math.abs(sample))
  if (peak / 32768 < silentPeak) return { problem: "the reference clip is silent" }
  const { start, end } = edges(clip, peak * edgeFloor)
  const seconds = (end - start) / rateHz
  if (seconds < minClipSeconds) {
    return {
      problem: `the reference clip has ${seconds.toFixed(2)} s of speech, ${minClipSeconds} s are needed`,
    }
  }
  return {
    speech: clip.subarray(start, Math.min(end, start + Math.round(maxClipSeconds * rateHz))),
    rateHz,
  }
}

/** Checked speech → f32 [-1, 1] mono at `encoderHz`. */
export const encoderAudio = (speech: Int16Array, rateHz: number, encoderHz: number): Float32Array =>
  resample(
    Float32Array.from(speech, (sample) => sample / 32768),
    rateHz,
    encoderHz,
  )

const edges = (clip: Int16Array, floor: number): { readonly start: number; readonly end: number } => {
  let start = 0
  while (start < clip.length && Math.abs(clip[start]!) < floor) start++
  let end = clip.length
  while (end > start && Math.abs(clip[end - 1]!) < floor) end--
  return { start, end }
}
