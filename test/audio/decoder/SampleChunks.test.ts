// However FFmpeg cuts its output, also within a sample, the chunks are the same.
import fc from "fast-check"
import { expect, it } from "vitest"
import { chunkSamples } from "#audio/decoder/DecoderWire.ts"
import { Rejected } from "#audio/decoder/Rejected.ts"
import { SampleChunks } from "#audio/decoder/SampleChunks.ts"

const limits = { rateHz: 16_000, maxSeconds: 10 }

const collect = async (pieces: ReadonlyArray<Uint8Array>, within = limits) => {
  const emitted: Array<Float32Array> = []
  const chunks = new SampleChunks(within, (samples) => {
    emitted.push(samples)
    return undefined
  })
  for (const piece of pieces) await chunks.take(piece)
  await chunks.end()
  return { emitted, samples: chunks.samples }
}

it("makes whole chunks and a rest of pieces of any size", () =>
  fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 3 * chunkSamples }),
      fc.array(fc.integer({ min: 1, max: 100_000 }), { maxLength: 30 }),
      async (count, sizes) => {
        const floats = Float32Array.from({ length: count }, (_, i) => Math.sin(i))
        const bytes = new Uint8Array(floats.buffer)
        const pieces: Array<Uint8Array> = []
        let at = 0
        for (const size of [...sizes, bytes.length]) {
          pieces.push(bytes.subarray(at, at + size))
          at = Math.min(bytes.length, at + size)
        }
        const { emitted, samples } = await collect(pieces)
        expect(samples).toBe(count)
        expect(emitted.slice(0, -1).every((chunk) => chunk.length === chunkSamples)).toBe(true)
        expect(
          Buffer.concat(emitted.map((chunk) => Buffer.from(chunk.buffer))).equals(Buffer.from(bytes)),
        ).toBe(true)
      },
    ),
    { numRuns: 30 },
  ))

it("drops the bytes of half a sample at the end", async () => {
  expect((await collect([new Uint8Array(4 * 5 + 3)])).samples).toBe(5)
})

it("takes what the limit allows and refuses one sample more", async () => {
  const tenth = { rateHz: 16_000, maxSeconds: 0.1 }
  expect((await collect([new Uint8Array(4 * 1_600)], tenth)).samples).toBe(1_600)
  await expect(collect([new Uint8Array(4 * 1_601)], tenth)).rejects.toThrow(Rejected)
})
