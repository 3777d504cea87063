import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import * as LogMel from "#engines/shared/listening/LogMel.ts"
import { hzToMel, melFilters, melToHz } from "#engines/shared/listening/MelFilters.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { MelMemory } from "#engines/whisper/features/MelMemory.ts"

const whisper80 = { melBins: 80, fftSize: 400, hopSamples: 160, rateHz: 16_000 }

const noise = (length: number, seed: number, level = 0.3): Float32Array => {
  const random = seededRandom(seed)
  return Float32Array.from({ length }, (_, i) => level * (random() - 0.5) + 0.4 * Math.sin(i / 7))
}

const cos = Float64Array.from({ length: 400 }, (_, n) => Math.cos((2 * Math.PI * n) / 400))

/** The definition, written out: a direct DFT in double precision over every frame, and dense triangles. */
const oracle = (samples: Float32Array, frames: number, melBins: number): Float64Array => {
  const total = frames * 160
  const at = (i: number): number => {
    const j = i < 0 ? -i : i >= total ? 2 * (total - 1) - i : i
    return samples[j] ?? 0
  }
  const toMel = (hz: number) => (hz < 1000 ? (3 * hz) / 200 : 15 + (27 * Math.log(hz / 1000)) / Math.log(6.4))
  const toHz = (mel: number) => (mel < 15 ? (200 * mel) / 3 : 1000 * 6.4 ** ((mel - 15) / 27))
  const edges = Array.from({ length: melBins + 2 }, (_, i) => toHz((toMel(8000) * i) / (melBins + 1)))
  const logs = new Float64Array(melBins * frames)
  let max = Number.NEGATIVE_INFINITY
  for (let frame = 0; frame < frames; frame++) {
    const power = Array.from({ length: 201 }, (_, bin) => {
      let re = 0
      let im = 0
      for (let n = 0; n < 400; n++) {
        const value = at(frame * 160 - 200 + n) * (0.5 - 0.5 * cos[n]!)
        re += value * cos[(bin * n) % 400]!
        im -= value * cos[(bin * n + 300) % 400]!
      }
      return re * re + im * im
    })
    for (let mel = 0; mel < melBins; mel++) {
      const [left, peak, right] = [edges[mel]!, edges[mel + 1]!, edges[mel + 2]!]
      let sum = 0
      for (let bin = 0; bin <= 200; bin++) {
        const hz = bin * 40
        const rise = (hz - left) / (peak - left)
        const fall = (right - hz) / (right - peak)
        sum += ((Math.max(0, Math.min(rise, fall)) * 2) / (right - left)) * power[bin]!
      }
      const log = Math.log10(Math.max(sum, 1e-10))
      logs[mel * frames + frame] = log
      if (log > max) max = log
    }
  }
  return logs.map((log) => (Math.max(log, max - 8) + 4) / 4)
}

const worst = (actual: Float32Array, expected: Float64Array): number => {
  expect(actual.length).toBe(expected.length)
  return actual.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0)
}

describe("MelFilters", () => {
  const weight = (filters: ReturnType<typeof melFilters>, mel: number, bin: number) =>
    filters[mel]!.weights[bin - filters[mel]!.firstBin] ?? 0

  it("has the published Slaney values", () => {
    const filters = melFilters({ melBins: 80, fftSize: 400, rateHz: 16_000 })
    // Entries of the published 80 × 201 filter table: mel, bin, weight.
    const published = [
      [0, 1, 0.02486259490251541],
      [1, 1, 0.001990821911022067],
      [1, 2, 0.022871771827340126],
      [9, 10, 0.006945197004824877],
      [39, 41, 0.011486922390758991],
      [69, 131, 0.00487553421407938],
      [79, 190, 0.0022320549469441175],
      [10, 12, 0],
    ] as const
    for (const [mel, bin, value] of published) expect(weight(filters, mel, bin)).toBeCloseTo(value, 8)
  })

  it("converts hertz to mels and back", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 8000, noNaN: true }), (hz) => {
        expect(melToHz(hzToMel(hz))).toBeCloseTo(hz, 6)
      }),
    )
  })
})

describe("LogMel", () => {
  it.effect("agrees with a direct DFT, with audio up to the last sample and with silence behind it", () =>
    Effect.gen(function* () {
      const mel = yield* LogMel.make(whisper80)
      for (const [length, frames] of [
        [30 * 160, 30],
        [11 * 160 + 37, 30],
        [29 * 160 + 150, 30],
        [1, 4],
      ] as const) {
        const samples = noise(length, length)
        expect(worst(mel.compute(samples, frames), oracle(samples, frames, 80))).toBeLessThan(1e-4)
      }
    }),
  )

  it.effect("has 128 bins for the large models", () =>
    Effect.gen(function* () {
      const mel = yield* LogMel.make({ ...whisper80, melBins: 128 })
      const samples = noise(20 * 160, 5)
      expect(worst(mel.compute(samples, 20), oracle(samples, 20, 128))).toBeLessThan(1e-4)
    }),
  )

  it.effect("silence is one value everywhere", () =>
    Effect.gen(function* () {
      const mel = yield* LogMel.make(whisper80)
      const features = mel.compute(new Float32Array(480_000), 3000)
      expect(features.length).toBe(80 * 3000)
      expect(features.every((value) => value === -1.5)).toBe(true)
    }),
  )

  it.effect("the floor follows the maximum of the window", () =>
    Effect.gen(function* () {
      const mel = yield* LogMel.make(whisper80)
      const features = mel.compute(noise(16_000, 3), 3000)
      const max = features.reduce((a, b) => Math.max(a, b))
      const min = features.reduce((a, b) => Math.min(a, b))
      expect(max - min).toBeCloseTo(2, 5)
      expect(features[2999]).toBeCloseTo(min, 6)
    }),
  )

  it.effect("does not change when the same window is computed again, or after another", () =>
    Effect.gen(function* () {
      const mel = yield* LogMel.make(whisper80)
      const samples = noise(3200, 9)
      const once = mel.compute(samples, 40)
      mel.compute(noise(6400, 1), 40)
      expect(mel.compute(samples, 40)).toEqual(once)
    }),
  )
})

describe("audio that grows", () => {
  /** Lengths of the transcribed audio, and of the silence padded behind. */
  const growth = fc.record({
    lengths: fc.array(fc.oneof(fc.integer({ min: 0, max: 700 }), fc.integer({ min: 0, max: 20_000 })), {
      minLength: 1,
      maxLength: 6,
    }),
    spareFrames: fc.nat(24),
    seed: fc.nat(1_000),
    level: fc.constantFrom(0, 1e-4, 0.3),
  })

  it.effect("has the features of the whole computation to the bit, in whatever steps it grew or shrank", () =>
    Effect.gen(function* () {
      const mel = yield* LogMel.make(whisper80)
      let reused = 0
      fc.assert(
        fc.property(growth, ({ lengths, level, seed, spareFrames }) => {
          const all = noise(Math.max(...lengths), seed, level)
          let known: LogMel.KnownFrames | undefined
          for (const length of lengths) {
            const samples = all.subarray(0, length)
            const frames = Math.ceil(length / 160) + spareFrames
            reused += known?.count ?? 0
            const heard = mel.extend(samples, frames, known)
            const whole = mel.compute(samples, frames)
            expect(Buffer.from(heard.features.buffer).equals(Buffer.from(whole.buffer))).toBe(true)
            known = heard.known
          }
        }),
        { numRuns: 60 },
      )
      expect(reused).toBeGreaterThan(1_000)
    }).pipe(Effect.scoped),
  )
})

describe("what is kept of it", () => {
  const frames = (bytes: number) => ({ count: 1, logs: new Float32Array(bytes / 4) })
  const mega = 1024 * 1024

  it("is 16 MiB at most, the newest", () => {
    const memory = new MelMemory()
    for (let stream = 0; stream < 40; stream++) memory.keep(stream, frames(mega))
    expect(memory.bytes).toBe(16 * mega)
    expect(memory.take(23)).toBeUndefined()
    expect(memory.take(24)?.count).toBe(1)
    expect(memory.take(24)).toBeUndefined()
    memory.keep(39, frames(mega / 2))
    expect(memory.bytes).toBe(14.5 * mega)
    memory.keep(50, frames(17 * mega))
    expect(memory.bytes).toBe(0)
  })
})
