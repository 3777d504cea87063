import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import * as CohereFeatures from "#engines/cohere/CohereFeatures.ts"
import { repeatedTail } from "#engines/cohere/LoopGuard.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"

const options: CohereFeatures.CohereFeatureOptions = {
  melBins: 128,
  rateHz: 16_000,
  hopSamples: 160,
  fftSize: 512,
  windowSamples: 400,
  preemphasis: 0.97,
  dither: 0,
}

const sound = (length: number): Float32Array => {
  const random = seededRandom(length)
  return Float32Array.from({ length }, (_, i) => 0.2 * (random() - 0.5) + 0.3 * Math.sin(i / 5))
}

const cos = Float64Array.from({ length: 512 }, (_, n) => Math.cos((2 * Math.PI * n) / 512))

/** The definition, written out in double precision, with a direct DFT and dense triangles. */
const oracle = (samples: Float32Array): Float64Array => {
  const valid = Math.floor(samples.length / 160)
  const y = Array.from(samples, (sample, i) => sample - (i === 0 ? 0 : 0.97 * samples[i - 1]!))
  const toMel = (hz: number) => (hz < 1000 ? (3 * hz) / 200 : 15 + (27 * Math.log(hz / 1000)) / Math.log(6.4))
  const toHz = (mel: number) => (mel < 15 ? (200 * mel) / 3 : 1000 * 6.4 ** ((mel - 15) / 27))
  const edges = Array.from({ length: 130 }, (_, i) => toHz((toMel(8000) * i) / 129))
  const values = new Float64Array((valid + 1) * 128)
  for (let frame = 0; frame < valid; frame++) {
    const windowed = Array.from({ length: 512 }, (_, n) => {
      const inside = n - 56
      if (inside < 0 || inside >= 400) return 0
      return (y[frame * 160 - 256 + n] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * inside) / 399))
    })
    const power = Array.from({ length: 257 }, (_, bin) => {
      let re = 0
      let im = 0
      for (let n = 0; n < 512; n++) {
        re += windowed[n]! * cos[(bin * n) % 512]!
        im -= windowed[n]! * cos[(bin * n + 384) % 512]!
      }
      return re * re + im * im
    })
    for (let mel = 0; mel < 128; mel++) {
      const [left, peak, right] = [edges[mel]!, edges[mel + 1]!, edges[mel + 2]!]
      let sum = 0
      power.forEach((value, bin) => {
        const hz = bin * 31.25
        const weight = Math.max(0, Math.min((hz - left) / (peak - left), (right - hz) / (right - peak)))
        sum += ((weight * 2) / (right - left)) * value
      })
      values[frame * 128 + mel] = Math.log(sum + 2 ** -24)
    }
  }
  for (let mel = 0; mel < 128; mel++) {
    const column = Array.from({ length: valid }, (_, frame) => values[frame * 128 + mel]!)
    const mean = column.reduce((a, b) => a + b, 0) / valid
    const variance = column.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (valid - 1)
    column.forEach((value, frame) => {
      values[frame * 128 + mel] = (value - mean) / (Math.sqrt(variance) + 1e-5)
    })
  }
  return values
}

describe("CohereFeatures", () => {
  it.effect("agrees with a direct DFT", () =>
    Effect.gen(function* () {
      const features = yield* CohereFeatures.make(options)
      for (const length of [20 * 160, 13 * 160 + 77]) {
        const { values, frames, validFrames } = features.compute(sound(length))
        expect([frames, validFrames]).toEqual([Math.floor(length / 160) + 1, Math.floor(length / 160)])
        const wanted = oracle(sound(length))
        expect(values.length).toBe(wanted.length)
        const worst = values.reduce((most, value, i) => Math.max(most, Math.abs(value - wanted[i]!)), 0)
        // Each bin is divided by its deviation, which magnifies single precision.
        expect(worst).toBeLessThan(1e-3)
      }
    }),
  )

  it.effect("the frame behind the audio is zero, each bin has mean 0 and deviation 1", () =>
    Effect.gen(function* () {
      const features = yield* CohereFeatures.make(options)
      const { values, validFrames } = features.compute(sound(16_000))
      expect(values.subarray(validFrames * 128).every((value) => value === 0)).toBe(true)
      for (const mel of [0, 64, 127]) {
        const column = Array.from({ length: validFrames }, (_, frame) => values[frame * 128 + mel]!)
        expect(column.reduce((a, b) => a + b, 0) / validFrames).toBeCloseTo(0, 4)
        expect(column.reduce((a, b) => a + b * b, 0) / (validFrames - 1)).toBeCloseTo(1, 2)
      }
    }),
  )

  it.effect("dither depends on the length alone, and silence stays finite", () =>
    Effect.gen(function* () {
      const features = yield* CohereFeatures.make({ ...options, dither: 1e-5 })
      const silence = new Float32Array(3200)
      const once = features.compute(silence).values
      expect(features.compute(silence).values).toEqual(once)
      expect(once.every(Number.isFinite)).toBe(true)
      expect(once.some((value) => value !== 0)).toBe(true)
      const still = yield* CohereFeatures.make(options)
      for (const length of [0, 159, 160, 320, 1000]) {
        expect(still.compute(new Float32Array(length)).values.every(Number.isFinite)).toBe(true)
      }
    }),
  )
})

describe("repeatedTail", () => {
  const run = [1, 2, 3, 4, 5, 6, 7, 8]

  it("finds a run of eight or more that is said twice", () => {
    expect(repeatedTail([9, ...run, ...run])).toBe(8)
    expect(repeatedTail([...run, 0, ...run, 0])).toBe(9)
    expect(repeatedTail(Array.from({ length: 16 }, () => 5))).toBe(8)
  })

  it("lets shorter repetitions and near repetitions pass", () => {
    expect(repeatedTail([1, 2, 3, 1, 2, 3])).toBe(0)
    expect(repeatedTail([...run, ...run.slice(0, 7), 9])).toBe(0)
    expect(repeatedTail([...run, ...run, 9])).toBe(0)
    expect(repeatedTail([])).toBe(0)
  })

  it("what is left after a cut does not end in a loop, if it was checked at every token", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(1, 2), { maxLength: 200 }), (stream) => {
        const tokens: Array<number> = []
        for (const token of stream) {
          tokens.push(token)
          const drop = repeatedTail(tokens)
          if (drop > 0) {
            tokens.splice(-drop)
            break
          }
        }
        expect(tokens.length).toBeLessThanOrEqual(stream.length)
        expect(repeatedTail(tokens)).toBe(0)
      }),
    )
  })
})
