// How many samples a file declares, counted in tables and fragments: exact for valid files, and bounded in work for
// invalid ones.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, expect, it } from "vitest"
import { declaredSamples } from "#audio/decoder/Mp4Tables.ts"
import { avTargets, chirp, writeWithAv } from "../../support/audio/AudioFiles.ts"
import { mutated, randomsFrom } from "../../support/audio/HostileFiles.ts"
import { boastingFragments, boastingTables, longSilence } from "../../support/audio/HostileMp4.ts"
import { growthOfTime } from "../../support/process/GrowthOfTime.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-tables-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const samplesOf = (bytes: Uint8Array): number =>
  declaredSamples((offset, length) => bytes.subarray(offset, offset + length), bytes.length)

const encoded = (): Buffer => {
  const path = join(folder, "clip")
  writeWithAv(path, chirp(10 * 48_000, 48_000), 48_000, avTargets.m4a)
  return readFileSync(path)
}

it("are as many as an honest file has", () => {
  expect(samplesOf(longSilence(5_000))).toBe(5_000)
  const frames = samplesOf(encoded())
  // Ten seconds in frames of 1,024, and the encoder's priming.
  expect(frames).toBeGreaterThanOrEqual(469)
  expect(frames).toBeLessThan(475)
})

it("are added up over tracks and fragments", () => {
  expect(samplesOf(boastingTables(30_000_000, 3))).toBe(90_000_000)
  expect(samplesOf(boastingFragments(20_000_000, 8))).toBe(160_000_000)
})

it("are looked for in bounded time whatever the bytes are", () => {
  const random = randomsFrom(7)
  const sources = [encoded(), boastingTables(1_000, 2), boastingFragments(1_000, 9), longSilence(300)]
  for (let n = 0; n < 2_000; n++) samplesOf(mutated(sources[n % sources.length]!, random))
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      expect(samplesOf(bytes)).toBeGreaterThanOrEqual(0)
    }),
  )
  // Nested boxes, and 3 million empty ones.
  const nested = Buffer.alloc(800_000)
  for (let at = 0; at < nested.length; at += 8) {
    nested.writeUInt32BE(nested.length - at, at)
    nested.write("moov", at + 4, "latin1")
  }
  expect(samplesOf(nested)).toBe(0)
  const empty = (bytes: number) => Buffer.alloc(bytes, Buffer.from([0, 0, 0, 8, 0x66, 0x72, 0x65, 0x65]))
  const [few, many] = [empty(1_500_000), empty(24_000_000)]
  // 16 times the boxes; 256 times as long would be quadratic.
  const growth = growthOfTime(
    () => expect(samplesOf(few)).toBe(0),
    () => expect(samplesOf(many)).toBe(0),
  )
  expect(growth).toBeLessThan(64)
})
