// The Ogg Opus writer, for any speech in pieces of any sizes: the same bytes, strict pages, exact length.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeOggOpusEncoder, oggOpusHeaders, oggSerial, preSkip } from "#audio/codecs/OggOpus.ts"
import { oggCrc, oggPage } from "#audio/codecs/OggPage.ts"
import { chirp } from "../../support/audio/AudioFiles.ts"
import { decodeOggOpus, parseOgg, parseOggOpus } from "../../support/audio/OggPages.ts"
import { inLong } from "../../support/groups/Runs.ts"

const concat = (parts: ReadonlyArray<Uint8Array>) => new Uint8Array(Buffer.concat(parts))

/** Encodes `samples` in pieces of the given sizes, repeated cyclically. */
const encode = async (
  samples: Int16Array,
  sizes: ReadonlyArray<number>,
  finish = true,
): Promise<Uint8Array> => {
  const encoder = await makeOggOpusEncoder()
  const parts = [oggOpusHeaders()]
  for (let at = 0, i = 0; at < samples.length; i++) {
    const size = sizes[i % sizes.length]!
    parts.push(...encoder.push(samples.subarray(at, at + size)))
    at += size
  }
  if (finish) parts.push(...encoder.finish())
  encoder.close()
  return concat(parts)
}

/** Lengths near the edges of frames, and any up to 0.6 s. */
const length = fc.oneof(
  fc.constantFrom(0, 1, 323, 324, 325, 479, 480, 481, 960, 4799, 4800, 4801),
  fc.integer({ min: 0, max: 14_400 }),
)
const chunking = fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 8 })

describe("Ogg Opus", () => {
  it("gives the same bytes however the samples are handed in", inLong, async () => {
    await fc.assert(
      fc.asyncProperty(length, chunking, async (n, sizes) => {
        const samples = chirp(n, 24_000)
        expect(Buffer.compare(await encode(samples, sizes), await encode(samples, [1 << 20]))).toBe(0)
      }),
      { numRuns: 40 },
    )
  })

  it("decodes to the length of its input, within a sample", async () => {
    await fc.assert(
      fc.asyncProperty(length, async (n) => {
        const decoded = decodeOggOpus(await encode(chirp(n, 24_000), [777]))
        expect(Math.abs(decoded.length / 2 - n)).toBeLessThanOrEqual(1)
      }),
      { numRuns: 40 },
    )
  })

  it("marks the end of the stream if and only if it was finished, on its last page", async () => {
    await fc.assert(
      fc.asyncProperty(length, fc.boolean(), async (n, finish) => {
        const { pages } = parseOgg(await encode(chirp(n, 24_000), [500], finish))
        expect(pages.map((page) => page.endOfStream)).toEqual(
          pages.map((_, i) => finish && i === pages.length - 1),
        )
      }),
      { numRuns: 40 },
    )
  })

  it("is readable up to any byte it is cut at", async () => {
    const whole = await encode(chirp(12_000, 24_000), [480])
    const all = parseOgg(whole).pages.length
    fc.assert(
      fc.property(fc.integer({ min: 0, max: whole.length }), (cut) => {
        const { pages, restBytes } = parseOgg(whole.subarray(0, cut))
        expect(pages.length).toBeLessThanOrEqual(all)
        expect(restBytes).toBeLessThan(8000)
        expect(pages.at(-1)?.endOfStream ?? false).toBe(cut === whole.length)
      }),
      { numRuns: 300 },
    )
  })

  it("lets each of the first 20 ms leave at once, and never holds more than 60 ms", async () => {
    const encoder = await makeOggOpusEncoder()
    const frame = new Int16Array(480)
    const emitted = Array.from({ length: 40 }, () => encoder.push(frame).length)
    encoder.close()
    expect(emitted.slice(0, 10)).toEqual(Array(10).fill(1))
    for (let i = 10; i + 3 <= emitted.length; i++) {
      expect(emitted.slice(i, i + 3).reduce((sum, pages) => sum + pages, 0)).toBe(1)
    }
  })

  it("is in time with its input: the pre-skip is the encoder's look-ahead", async () => {
    const samples = chirp(24_000, 24_000)
    const stream = await encode(samples, [24_000])
    expect(parseOggOpus(stream)).toMatchObject({ preSkip: preSkip, inputRateHz: 24_000 })
    const decoded = decodeOggOpus(stream)
    const match = (lag: number) => {
      let sum = 0
      for (let i = 2000; i < 22_000; i++) sum += samples[i]! * (decoded[2 * (i + lag)] ?? 0)
      return sum
    }
    const lags = Array.from({ length: 41 }, (_, i) => i - 20)
    const best = lags.reduce((a, b) => (match(b) > match(a) ? b : a))
    expect(Math.abs(best)).toBeLessThanOrEqual(1)
    // And it is the same sound: the correlation at the best lag is nearly that of the signal with itself.
    const energy = samples.slice(2000, 22_000).reduce((sum, sample) => sum + sample * sample, 0)
    expect(match(best) / energy).toBeGreaterThan(0.9)
  })

  it("writes equal bytes for equal speech, with its constant serial number", async () => {
    const samples = chirp(5000, 24_000)
    const [a, b] = [await encode(samples, [100]), await encode(samples, [100])]
    expect(a).toEqual(b)
    expect(new DataView(a.buffer).getUint32(14, true)).toBe(oggSerial)
  })

  it("frames packets of any size that fits, as a strict reader finds them again", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 800 }), { maxLength: 20 }), (packets) => {
        const page = oggPage({ flags: 2, granule: 7n, serial: 1, sequence: 0, packets })
        expect(parseOgg(page).pages[0]?.packets.map((packet) => [...packet])).toEqual(
          packets.map((packet) => [...packet]),
        )
      }),
      { numRuns: 100 },
    )
    expect(() =>
      oggPage({ flags: 0, granule: 0n, serial: 1, sequence: 0, packets: [new Uint8Array(66_000)] }),
    ).toThrow(RangeError)
    // The check value of CRC-32/CKSUM, before its final complement.
    expect(oggCrc(new TextEncoder().encode("123456789"))).toBe(0x89a1897f)
  })
})
