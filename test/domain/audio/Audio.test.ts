// Samples, ms, bytes; and the WAV header, read back by another library.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import wavefile from "wavefile"
import { wavHeader, wavHeaderBytes, wavMaxSamples } from "#audio/codecs/Wav.ts"
import {
  bytesToS16,
  bytesToSamples,
  f32ToS16,
  msToSamples,
  s16ToBytes,
  s16ToF32,
  samplesToBytes,
  samplesToMs,
  samplesToSeconds,
  secondsToSamples,
} from "#domain/audio/Audio.ts"

const s16 = fc
  .array(fc.integer({ min: -32_768, max: 32_767 }), { maxLength: 200 })
  .map((all) => Int16Array.from(all))

describe("audio arithmetic", () => {
  it("turns time into whole samples and back without exceeding it", () => {
    expect(msToSamples(20, 24_000)).toBe(480)
    expect(samplesToMs(480, 24_000)).toBe(20)
    expect(secondsToSamples(1.5, 16_000)).toBe(24_000)
    expect(samplesToSeconds(24_000, 16_000)).toBe(1.5)
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        fc.constantFrom(16_000, 24_000, 44_100),
        (ms, rateHz) => {
          const samples = msToSamples(ms, rateHz)
          expect(samplesToMs(samples, rateHz)).toBeLessThanOrEqual(ms + 1e-6)
          expect(samplesToMs(samples + 1, rateHz)).toBeGreaterThan(ms - 1e-6)
        },
      ),
    )
  })

  it("knows that an odd byte is not a sample", () => {
    expect([0, 1, 2, 3].map(bytesToSamples)).toEqual([0, 0, 1, 1])
    expect(samplesToBytes(3)).toBe(6)
  })

  it("keeps every 16-bit value through floats and through bytes", () => {
    fc.assert(
      fc.property(s16, fc.integer({ min: 0, max: 1 }), (samples, odd) => {
        expect(f32ToS16(s16ToF32(samples))).toEqual(samples)
        // Bytes at an odd offset in their buffer, as they come from a socket.
        const bytes = new Uint8Array(samples.byteLength + odd).subarray(odd)
        bytes.set(s16ToBytes(samples))
        expect(bytesToS16(bytes)).toEqual(samples)
      }),
    )
  })

  it("writes little-endian, clips, and takes NaN as silence", () => {
    expect([...s16ToBytes(Int16Array.of(1, -2))]).toEqual([1, 0, 0xfe, 0xff])
    expect([...f32ToS16(Float32Array.of(2, 1, -1, -7, Number.NaN, Number.POSITIVE_INFINITY))]).toEqual([
      32_767, 32_767, -32_768, -32_768, 0, 32_767,
    ])
  })
})

describe("WAV header", () => {
  it("is what another library reads back, sizes and samples", () => {
    fc.assert(
      fc.property(s16, fc.constantFrom(8000, 16_000, 24_000), (samples, rateHz) => {
        const file = Buffer.concat([wavHeader(samples.length, rateHz), s16ToBytes(samples)])
        expect(file.readUInt32LE(4)).toBe(file.length - 8)
        expect(file.readUInt32LE(40)).toBe(file.length - wavHeaderBytes)
        if (samples.length === 0) return
        const wav = new wavefile.WaveFile(new Uint8Array(file))
        expect(wav.fmt).toMatchObject({
          audioFormat: 1,
          numChannels: 1,
          sampleRate: rateHz,
          byteRate: rateHz * 2,
          blockAlign: 2,
          bitsPerSample: 16,
        })
        expect([...(wav.getSamples(false, Int16Array) as unknown as Int16Array)]).toEqual([...samples])
      }),
    )
  })

  it("can tell its largest size", () => {
    const header = Buffer.from(wavHeader(wavMaxSamples, 24_000))
    expect(header.readUInt32LE(4)).toBeGreaterThan(0xffff_fff0)
    expect(header.readUInt32LE(40) + 36).toBe(header.readUInt32LE(4))
  })
})
