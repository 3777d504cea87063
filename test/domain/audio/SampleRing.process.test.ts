// Samples through a ring: the reader gets the writer's samples, in pieces of any size, as long as nothing is
// read that was released and nothing is released too late. And the decoder over it, with real files and processes.
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it as effectIt } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, describe, expect, it } from "vitest"
import { type Decoder, makeDecoder } from "#audio/Decoder.ts"
import { RingWriter, Unwritable } from "#audio/decoder/RingWriter.ts"
import { type SampleRing, stretches } from "#domain/audio/SampleRing.ts"
import { readSpan } from "#engines/shared/files/RequestFiles.ts"
import { chirp, wavBytes } from "../../support/audio/AudioFiles.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-ring-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let rings = 0
const fresh = (ringSamples: number): SampleRing => ({ path: join(folder, `ring-${rings++}`), ringSamples })

/** Sample i of the audio, exact in f32. */
const sampleAt = (i: number): number => (i % 8_388_593) / 8_388_608

const audio = (from: number, count: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => sampleAt(from + i))

describe("a ring", () => {
  it("lies in one stretch or two, without a gap", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.nat(1_000), fc.nat(50), (ringSamples, from, length) => {
        const count = Math.min(length, ringSamples)
        const places = stretches({ ringSamples }, from, count).flatMap(({ offsetBytes, samples }) =>
          Array.from({ length: samples }, (_, i) => offsetBytes / 4 + i),
        )
        expect(places).toEqual(Array.from({ length: count }, (_, i) => (from + i) % ringSamples))
      }),
    ))

  it("gives back what was put in, whatever the cuts", async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 3_000 }),
        fc.nat(900),
        cuts,
        cuts,
        async (ringSamples, total, from, writes, reads) => {
          const ring = fresh(ringSamples)
          let written = from
          let until = from + ringSamples
          const writer = new RingWriter({ ...ring, from, until }, (more) => {
            written += more
            expect(written).toBeLessThanOrEqual(until)
          })
          const writing = (async () => {
            for (let at = 0, turn = 0; at < total; turn++) {
              const count = Math.min(writes[turn % writes.length]!, total - at)
              await writer.write(audio(at, count))
              at += count
            }
          })()
          for (let at = from, turn = 0; at < total; turn++) {
            // Its writer waits for free space by now, or has written all.
            await new Promise(setImmediate)
            const count = Math.min(reads[turn % reads.length]!, written - at)
            expect(readSpan({ ...ring, from: at, count })).toEqual(audio(at, count))
            at += count
            until = at + ringSamples
            writer.allowUntil(until)
          }
          await writing
          writer.close()
          expect(written).toBe(Math.max(from, total))
          expect(statSync(ring.path).size).toBeLessThanOrEqual(ringSamples * 4)
        },
      ),
      { numRuns: 80 },
    )
  })

  it("says so when it cannot be read or written", () => {
    const missing = { path: join(folder, "no", "such", "folder"), ringSamples: 8 }
    expect(() => readSpan({ ...missing, from: 0, count: 1 })).toThrow(/ENOENT/)
    expect(() => new RingWriter({ ...missing, from: 0, until: 8 }, () => {})).toThrow(Unwritable)
    const short = fresh(8)
    writeFileSync(short.path, new Uint8Array(12))
    expect(() => readSpan({ ...short, from: 0, count: 4 })).toThrow("the audio ends early")
  })
})

const withDecoder = <A, E>(body: (decoder: Decoder["Service"]) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.scoped(Effect.flatMap(makeDecoder(), body))

/** Each may be a part of a larger buffer. */
const joined = (parts: ReadonlyArray<Float32Array>): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength)))

const seconds = 20
const file = join(folder, "speech")
writeFileSync(file, wavBytes(chirp(seconds * 48_000, 48_000), 48_000, "16"))

/** All that the decoder puts into a ring, read and released in steps. */
const throughRing = (decoder: Decoder["Service"], ringSamples: number, from: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const ring = fresh(ringSamples)
      const decoded = yield* decoder.decodeInto(file, { ...ring, from, until: from + ringSamples })
      const parts: Array<Float32Array> = []
      let at = from
      for (;;) {
        const more = yield* decoded.pull
        if (more === undefined) return { parts, totals: decoded.totals(), samples: at }
        parts.push(readSpan({ ...ring, from: at, count: more }))
        at += more
        decoded.allowUntil(at + ringSamples)
      }
    }),
  )

describe("a decoder", () => {
  effectIt.live("puts into a ring what it would have sent", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const sent = yield* Effect.scoped(
          Effect.gen(function* () {
            const { pull } = yield* decoder.decode(file)
            const parts: Array<Float32Array> = []
            for (;;) {
              const samples = yield* pull
              if (samples === undefined) return joined(parts)
              parts.push(samples)
            }
          }),
        )
        for (const [ringSamples, from] of [
          [1_000_000, 0],
          [50_000, 0],
          [7_001, 0],
          [50_000, 123_457],
        ] as const) {
          const { parts, samples, totals } = yield* throughRing(decoder, ringSamples, from)
          const bytes = joined(parts)
          expect(bytes.equals(sent.subarray(from * 4))).toBe(true)
          expect(samples).toBe(sent.length / 4)
          expect(totals?.samples).toBe(samples)
        }
      }),
    ),
  )

  effectIt.live("waits for free space, and ends at once when it is interrupted", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const ring = fresh(40_000)
        const written = yield* Effect.scoped(
          Effect.gen(function* () {
            const { pull } = yield* decoder.decodeInto(file, { ...ring, from: 0, until: 40_000 })
            let samples = 0
            while (samples < 40_000) samples += (yield* pull) ?? Number.NaN
            // No more arrives without free space, however long the wait.
            const more = yield* Effect.timeoutOption(pull, 200)
            expect(more._tag).toBe("None")
            return samples
          }),
        )
        expect(written).toBe(40_000)
        expect(statSync(ring.path).size).toBe(160_000)
      }),
    ),
  )

  effectIt.live("says what kept it from writing", () =>
    withDecoder((decoder) =>
      Effect.gen(function* () {
        const path = join(folder, "nowhere", "ring")
        const decode = decoder.decodeInto(file, { path, ringSamples: 100_000, from: 0, until: 100_000 })
        const error = yield* Effect.flip(Effect.scoped(decode))
        expect(error.reason).toBe("Spool")
        expect(error.detail).toContain("ENOENT")
        expect(existsSync(path)).toBe(false)
        // The process is as good as before.
        expect((yield* throughRing(decoder, 100_000, 0)).samples).toBe(seconds * 16_000)
      }),
    ),
  )
})
