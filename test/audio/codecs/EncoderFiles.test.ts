// Files of each encoder against strict readers of the tests' own: format, length to the sample, and whether they end.
// EncoderOutsideTools.long.test.ts asks other people's programs the same.

import { expect, it } from "vitest"
import wavefile from "wavefile"
import { encodedLengths, encodedMp3, encodedOpus, encodedWav } from "../../support/audio/EncodedSpeech.ts"
import { mp3Frames, mp3Recording } from "../../support/audio/Mp3Frames.ts"
import { decodeOggOpus, parseOggOpus } from "../../support/audio/OggPages.ts"

it.each(encodedLengths)(
  "Ogg Opus of %i samples tells its rate and pre-skip, ends, and plays as long",
  async (samples) => {
    const bytes = await encodedOpus(samples)
    expect(parseOggOpus(bytes)).toMatchObject({ preSkip: 312, inputRateHz: 24_000, ended: true })
    // It plays at 48 kHz.
    expect(decodeOggOpus(bytes).length / 2).toBe(samples)
  },
)

it("Ogg Opus that was not finished has no end", async () => {
  expect(parseOggOpus(await encodedOpus(48_000, false)).ended).toBe(false)
})

it.each(encodedLengths)("MP3 of %i samples has constant 128 kbit/s and tells its length", async (samples) => {
  const bytes = await encodedMp3(samples)
  expect([...new Set(mp3Frames(bytes).map((frame) => JSON.stringify(frame)))]).toEqual([
    JSON.stringify({ kbps: 128, rateHz: 24_000, mono: true }),
  ])
  const { delay, frames, padding, sizeBytes } = mp3Recording(bytes)
  expect(frames * 576 - delay - padding).toBe(samples)
  expect(sizeBytes).toBe(bytes.length)
})

it.each(encodedLengths)("WAV of %i samples has exactly these", (samples) => {
  const wav = new wavefile.WaveFile(encodedWav(samples))
  expect(wav.fmt).toMatchObject({ audioFormat: 1, numChannels: 1, sampleRate: 24_000, bitsPerSample: 16 })
  expect(wav.getSamples(false, Int16Array)).toHaveLength(samples)
})
