// PCM, WAV and the change of the sampling rate.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import wavefile from "wavefile"
import { joined, PcmReader, pcmOf } from "../../audio/Pcm.js"
import { Resampler } from "../../audio/Resampler.js"
import { wavFile } from "../../audio/Wav.js"

const piecesOf = <A extends Uint8Array | Float32Array>(
  all: A,
  sizes: ReadonlyArray<number>,
): ReadonlyArray<A> => {
  const pieces: Array<A> = []
  let at = 0
  for (const size of [...sizes, all.length]) {
    pieces.push(all.subarray(at, at + size) as A)
    at = Math.min(all.length, at + size)
  }
  return pieces
}

describe("PCM", () => {
  it("is read the same however it is cut, also inside a sample, and written back", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -32_768, max: 32_767 }), { maxLength: 200 }),
        fc.array(fc.nat({ max: 9 }), { maxLength: 60 }),
        (values, sizes) => {
          const bytes = new Uint8Array(Int16Array.from(values).buffer)
          const reader = new PcmReader()
          const read = piecesOf(bytes, sizes).flatMap((piece) => [...reader.push(piece)])
          expect(read.map((sample) => sample * 32_768)).toEqual(values)
          expect(pcmOf(Float32Array.from(read))).toEqual(bytes)
          expect(joined(piecesOf(bytes, sizes))).toEqual(bytes)
        },
      ),
    )
  })

  it("cuts what is too loud", () => {
    expect([...new Int16Array(pcmOf(Float32Array.from([2, -2, 1, -1])).buffer)]).toEqual([
      32_767, -32_768, 32_767, -32_768,
    ])
  })
})

it("a WAV file is one that other programs read", async () => {
  const samples = Int16Array.from({ length: 500 }, (_, i) => i * 60 - 15_000)
  const file = wavFile(new Uint8Array(samples.buffer), 24_000)
  const read = new wavefile.WaveFile(new Uint8Array(await file.arrayBuffer()))
  expect((read.fmt as { sampleRate: number }).sampleRate).toBe(24_000)
  expect([...(read.getSamples(false, Int16Array) as unknown as Int16Array)]).toEqual([...samples])
})

const tone = (hz: number, rate: number, seconds: number) =>
  Float32Array.from({ length: rate * seconds }, (_, i) => Math.sin((2 * Math.PI * hz * i) / rate))
const resampled = (samples: Float32Array, from: number, to: number, sizes: ReadonlyArray<number> = []) => {
  const resampler = new Resampler(from, to)
  const pieces = piecesOf(samples, sizes).map((piece) => resampler.push(piece))
  return Float32Array.from([...pieces.flatMap((piece) => [...piece]), ...resampler.end()])
}
const level = (samples: Float32Array) =>
  Math.sqrt(samples.reduce((sum, one) => sum + one * one, 0) / samples.length)
const middle = (samples: Float32Array) => samples.subarray(samples.length >> 2, (samples.length * 3) >> 2)

describe("the change of the sampling rate", () => {
  it("does not depend on how the sound is cut", () => {
    const sound = tone(440, 44_100, 0.1)
    const whole = resampled(sound, 44_100, 16_000)
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 900 }), { maxLength: 20 }), (sizes) => {
        expect(resampled(sound, 44_100, 16_000, sizes)).toEqual(whole)
      }),
      { numRuns: 30 },
    )
  })

  it.each([
    [48_000, 16_000],
    [44_100, 16_000],
    [16_000, 24_000],
    [8_000, 16_000],
  ])("from %i to %i keeps a tone of speech within a hundredth, and its length", (from, to) => {
    const out = resampled(tone(1_000, from, 0.5), from, to)
    expect(Math.abs(out.length - to * 0.5)).toBeLessThan(to / 100)
    const wanted = tone(1_000, to, 0.5)
    const errors = middle(wanted).map((sample, i) => sample - out[i + (wanted.length >> 2)]!)
    expect(level(errors) / level(wanted)).toBeLessThan(0.01)
  })

  it("removes what the lower rate cannot hold: 60 dB", () => {
    const out = middle(resampled(tone(11_000, 48_000, 0.5), 48_000, 16_000))
    expect(level(out)).toBeLessThan(0.001)
  })

  it("leaves sound of the same rate as it is", () => {
    const sound = tone(3_000, 16_000, 0.05)
    expect(resampled(sound, 16_000, 16_000).subarray(0, sound.length)).toEqual(sound)
  })
})
