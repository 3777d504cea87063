// Files whose headers declare far more samples than they hold are refused before FFmpeg allocates for them. Where the
// file is large enough to be plausible, the kernel bounds the memory of its decoder. What a valid file needs
// stays below that bound.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { defaultLimits, makeDecoder } from "#audio/Decoder.ts"
import { binding } from "#audio/DecoderProcess.ts"
import type { DecoderProgram } from "#audio/decoder/DecoderWire.ts"
import { boastingFragments, boastingTables, longSilence } from "../support/audio/HostileMp4.ts"
import { needs } from "../support/groups/Needs.ts"
import { residentBytes } from "../support/process/ProcessMemory.ts"
import { ffmpeg } from "./DecoderHarness.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-memory-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, "file")

const megabytes = (bytes: number): number => Math.round(bytes / 1024 ** 2)

/**
 * Decodes it in a fresh process: how that ended, and by how much the process grew at most. All memory of a program that it
 * starts counts as growth.
 */
const measured = (program: DecoderProgram, bytes: Buffer, limits = defaultLimits) =>
  Effect.scoped(
    Effect.gen(function* () {
      writeFileSync(path, bytes)
      const decoder = yield* makeDecoder({ program: Effect.succeed(program) })
      // The first file brings the process to the memory that any file needs.
      writeFileSync(join(folder, "first"), longSilence(100))
      const drain = (file: string) =>
        Effect.scoped(
          Effect.flatMap(decoder.decode(file, { limits }), ({ stream }) => Stream.runDrain(stream)),
        )
      yield* drain(join(folder, "first"))
      const pid = decoder.pids()[0]!
      const before = residentBytes(pid)!.now
      let peak = before
      const peakNow = () => {
        const [own = 0, ...others] = decoder.pids().map((each) => residentBytes(each)?.peak ?? 0)
        return own + others.reduce((sum, each) => sum + each, 0)
      }
      const watch = setInterval(() => {
        peak = Math.max(peak, peakNow())
      }, 2)
      const outcome = yield* Effect.match(drain(path), {
        onFailure: (error) => error.reason,
        onSuccess: () => "decoded",
      })
      clearInterval(watch)
      peak = Math.max(peak, peakNow())
      return { outcome, grownMb: megabytes(peak - before) }
    }),
  )

/** The kernel's limit of private memory; with a program there are two processes, and the program has libraries. */
const mostMb = { "node-av": 256, ffmpeg: 400 }

const tests = (program: DecoderProgram): void => {
  const bombs: ReadonlyArray<readonly [string, Buffer]> = [
    ["30 million samples of one size", boastingTables(30_000_000, 1)],
    ["three tracks of them", boastingTables(30_000_000, 3)],
    ["with composition offsets", boastingTables(30_000_000, 3, { offsets: true })],
    ["nine tracks that each just fit", boastingTables(5_000_000, 9)],
    ["a fragment of 20 million samples", boastingFragments(20_000_000, 1)],
    ["eight fragments", boastingFragments(1_500_000, 8)],
  ]
  for (const [name, bytes] of bombs)
    it.live(`is not touched by ${name}`, () =>
      Effect.gen(function* () {
        expect(bytes.length).toBeLessThan(16_384)
        const { grownMb, outcome } = yield* measured(program, bytes)
        expect(outcome).toBe("NotAudio")
        expect(grownMb).toBeLessThan(16)
      }),
    )

  for (const samples of [30_000_000, 9_000_000])
    it.live(`is bounded: ${samples} samples, in a file of as many bytes`, () =>
      Effect.gen(function* () {
        const { grownMb, outcome } = yield* measured(
          program,
          boastingTables(samples, 1, { sizeBytes: samples }),
        )
        expect(["Empty", "NotAudio", "decoded"]).toContain(outcome)
        expect(grownMb).toBeLessThan(mostMb[program.kind])
      }),
    )

  it.live("is enough for 40 hours of AAC", () =>
    Effect.gen(function* () {
      const { outcome } = yield* measured(program, longSilence(40 * 155_000), {
        ...defaultLimits,
        maxSeconds: 60,
      })
      expect(outcome).toBe("TooLong")
    }),
  )
}

describe("a decoder's memory", needs("rlimits"), () => {
  describe("node-av", () => tests(binding))
  describe("ffmpeg", needs("ffmpeg"), () => tests(ffmpeg ?? binding))
})
