// Spoken audio for tests of recognition: the evaluation clips of the built-in recogniser, with their texts, and longer
// files made of them.
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { pcmOf, samplesOf, wavOf } from "./WavFile.ts"

const folder = new URL("../../../models/whisper-demo-en/eval/", import.meta.url)

export interface Clip {
  readonly file: string
  /** The text that is spoken. */
  readonly text: string
  readonly seconds: number
}

export const clips = JSON.parse(
  readFileSync(new URL("transcripts.json", folder), "utf8"),
) as ReadonlyArray<Clip>

/** The word error rate of these clips one by one, from the model card. */
export const cardWordErrorRate = 0.104

export const clipPath = (clip: Clip): string => fileURLToPath(new URL(clip.file, folder))

export const clipBytes = (clip: Clip): Buffer => readFileSync(clipPath(clip))

export const rateHz = 16_000

/** 16-bit mono samples at 16 kHz. */
export const clipSamples = (clip: Clip): Int16Array => samplesOf(clipBytes(clip))

const all = (): Int16Array => {
  const names = new Set(readdirSync(folder))
  const parts = clips.filter(({ file }) => names.has(file)).map(clipSamples)
  const joined = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** The clips one after the other, repeated until exactly that duration. */
export const longSamples = (seconds: number): Int16Array => {
  const once = all()
  const samples = new Int16Array(Math.round(seconds * rateHz))
  for (let at = 0; at < samples.length; at += once.length)
    samples.set(once.subarray(0, samples.length - at), at)
  return samples
}

export const longWav = (seconds: number): Buffer => wavOf(pcmOf(longSamples(seconds)), rateHz)

/** One clip every 20 seconds with silence between: the duration of a long file with a fifth of the engine's work. */
export const sparseWav = (seconds: number): Buffer => {
  const samples = new Int16Array(Math.round(seconds * rateHz))
  const spoken = clips.slice(0, 6).map(clipSamples)
  for (let at = 0, i = 0; at < samples.length; at += 20 * rateHz, i++) {
    const clip = spoken[i % spoken.length]!
    samples.set(clip.subarray(0, samples.length - at), at)
  }
  return wavOf(pcmOf(samples), rateHz)
}
