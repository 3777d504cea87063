// Opus for calls: whatever comes as a packet is decoded or is none, and what stands for lost audio is as long as it was.
import fc from "fast-check"
import { expect, it } from "vitest"
import { makeOpusDecoder, makeOpusEncoder } from "#audio/codecs/OpusCodec.ts"
import { Resampler } from "#audio/Resampler.ts"
import { longSamples, rateHz } from "../../support/audio/SpeechClips.ts"

it("no bytes do harm: they are samples of a packet, or undefined, and the next packet is decoded", async () => {
  const decoder = await makeOpusDecoder(24_000)
  const encoder = await makeOpusEncoder({ rateHz: 24_000, frameSamples: 480, bitsPerSecond: 32_000, voip: 5 })
  const good = encoder.encode(new Int16Array(480))
  // Every first byte: all modes, bandwidths, lengths of frames, one and two channels, several frames.
  const packet = fc
    .tuple(fc.nat({ max: 255 }), fc.uint8Array({ maxLength: 1_500 }))
    .map(([first, rest]) => Uint8Array.from([first, ...rest]))
  fc.assert(
    fc.property(packet, fc.nat({ max: 3_000 }), (bytes, lost) => {
      expect(decoder.conceal(lost, bytes).length).toBe(lost)
      const samples = decoder.decode(bytes)
      if (samples !== undefined) expect(samples.length).toBeLessThanOrEqual(2_880)
      expect(decoder.decode(good)?.length).toBe(480)
    }),
    { numRuns: 300 },
  )
  expect(decoder.decode(new Uint8Array(0))).toBeUndefined()
  expect(decoder.decode(new Uint8Array(5_000))).toBeUndefined()
  encoder.close()
  decoder.close()
})

it("what stands for lost audio is as long as it was, with and without a packet behind it", async () => {
  const decoder = await makeOpusDecoder(24_000)
  const encoder = await makeOpusEncoder({ rateHz: 24_000, frameSamples: 480, bitsPerSecond: 32_000, voip: 5 })
  encoder.expectLoss(0.1)
  const speech = new Resampler(rateHz, 24_000).push(longSamples(2.1))
  const packets = Array.from({ length: 100 }, (_, nth) =>
    encoder.encode(speech.slice(nth * 480, (nth + 1) * 480)),
  )
  for (const packet of packets.slice(0, 50)) decoder.decode(packet)
  for (const length of [0, 1, 59, 60, 480, 481, 960, 2_880, 2_940, 9_600, 120_000]) {
    expect(decoder.conceal(length, undefined).length).toBe(length)
    expect(decoder.conceal(length, packets[51]).length).toBe(length)
  }
  encoder.close()
  decoder.close()
})
