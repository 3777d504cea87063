// Speech for the live bench: the evaluation clips of the built-in model, and any number of other clips, made of their
// parts with pauses, noise and other loudness. 16 kHz s16 mono; the same for the same seed.
import { readFileSync } from "node:fs"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { wavOf } from "#harness/data/Clip.ts"

const folder = new URL("../../models/whisper-demo-en/eval/", import.meta.url)
const wavHeadBytes = 44
export const rateHz = 16_000

const clips: ReadonlyArray<Int16Array> = (
  JSON.parse(readFileSync(new URL("transcripts.json", folder), "utf8")) as ReadonlyArray<{
    readonly file: string
  }>
).map(({ file }) => bytesToS16(readFileSync(new URL(file, folder)).subarray(wavHeadBytes)))

const joined = (parts: ReadonlyArray<Int16Array>): Int16Array => {
  const all = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

const everything = joined(clips)

/** The clips one after the other, repeated. */
export const speech = (seconds: number): Int16Array =>
  joined(
    Array.from({ length: Math.ceil((seconds * rateHz) / everything.length) }, () => everything),
  ).subarray(0, seconds * rateHz)

/** One to three parts of clips, 0.5 to 12 s. */
export const madeUp = (seed: number): Int16Array => {
  let state = (seed * 2_654_435_761 + 1) >>> 0
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const hiss = random() * 200
  const parts = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    const clip = clips[Math.floor(random() * clips.length)] ?? new Int16Array()
    const from = Math.floor(random() * 0.6 * clip.length)
    const to = from + Math.floor((0.15 + random() * 0.85) * (clip.length - from))
    const gain = 0.3 + random() * 0.7
    const pause = new Int16Array(Math.floor(random() * rateHz))
    return joined([clip.subarray(from, to).map((sample) => sample * gain), pause])
  })
  return joined(parts).map((sample) => sample + (random() * 2 - 1) * hiss)
}

/** As a WAV file. */
export const wavFile = (samples: Int16Array): Buffer => Buffer.from(wavOf(samples, rateHz))
