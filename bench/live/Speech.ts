// Speech for the live bench: the evaluation clips of the built-in model, and any number of other clips, made of their
// parts with pauses, noise and other loudness. 16 kHz s16 mono; the same for the same seed.
import { readFileSync } from "node:fs"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"

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
export const wavOf = (samples: Int16Array): Buffer<ArrayBuffer> => {
  const pcm = s16ToBytes(samples)
  const head = Buffer.alloc(wavHeadBytes)
  head.write("RIFF", 0)
  head.writeUInt32LE(wavHeadBytes - 8 + pcm.length, 4)
  head.write("WAVEfmt ", 8)
  const bytesPerSample = 2
  const pcmFormat = 1
  const channels = 1
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(pcmFormat, 20)
  head.writeUInt16LE(channels, 22)
  head.writeUInt32LE(rateHz, 24)
  head.writeUInt32LE(rateHz * bytesPerSample, 28)
  head.writeUInt16LE(bytesPerSample, 32)
  head.writeUInt16LE(8 * bytesPerSample, 34)
  head.write("data", 36)
  head.writeUInt32LE(pcm.length, 40)
  return Buffer.concat([head, pcm])
}
