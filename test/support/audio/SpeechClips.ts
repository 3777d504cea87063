// Spoken audio for tests of recognition: the evaluation clips of the built-in recogniser, with their texts, and longer
// files made of them.
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import wavefile from "wavefile"
import { wavBytes } from "./AudioFiles.ts"

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
export const clipSamples = (clip: Clip): Int16Array =>
  Int16Array.from(
    new wavefile.WaveFile(clipBytes(clip)).getSamples(false, Int16Array) as unknown as Int16Array,
  )

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
  return Int16Array.from({ length: Math.round(seconds * rateHz) }, (_, i) => once[i % once.length]!)
}

export const longWav = (seconds: number): Buffer => Buffer.from(wavBytes(longSamples(seconds), rateHz, "16"))

/** One clip every 20 seconds with silence between: the duration of a long file with a fifth of the engine's work. */
export const sparseWav = (seconds: number): Buffer => {
  const samples = new Int16Array(Math.round(seconds * rateHz))
  const spoken = clips.slice(0, 6).map(clipSamples)
  for (let at = 0, i = 0; at < samples.length; at += 20 * rateHz, i++) {
    const clip = spoken[i % spoken.length]!
    samples.set(clip.subarray(0, samples.length - at), at)
  }
  return Buffer.from(wavBytes(samples, rateHz, "16"))
}
