// Output samples: level, offset, edges, rounding.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { ceiling, pauseSamples, trimmedPcm } from "#engines/shared/speech/Pcm.ts"

const rate = 24_000
const toPcm = (wave: Float32Array, rateHz: number, speed?: number): Int16Array | undefined =>
  trimmedPcm(wave, rateHz, speed)?.samples
const tone = (seconds: number, level: number, offset = 0, hz = 220): Float32Array =>
  Float32Array.from(
    { length: Math.round(seconds * rate) },
    (_, i) => offset + level * Math.sin((2 * Math.PI * hz * i) / rate),
  )

const silence = (seconds: number): Float32Array => new Float32Array(Math.round(seconds * rate))
const join = (...parts: ReadonlyArray<Float32Array>): Float32Array =>
  Float32Array.from(parts.flatMap((part) => [...part]))

const mean = (samples: Int16Array): number =>
  samples.reduce((sum, sample) => sum + sample, 0) / samples.length

describe("pcm of a piece", () => {
  it("keeps a quiet piece as it is and lowers a loud one to −1 dBFS", () => {
    const quiet = toPcm(tone(0.5, 0.5), rate)!
    expect(Math.max(...quiet)).toBeGreaterThan(0.49 * 32767)
    expect(Math.max(...quiet)).toBeLessThan(0.51 * 32767)
    const loud = toPcm(tone(0.5, 3), rate)!
    const peak = Math.max(...loud.map(Math.abs))
    expect(peak).toBeLessThanOrEqual(Math.ceil(ceiling * 32767))
    expect(peak).toBeGreaterThan(0.99 * ceiling * 32767)
  })

  it("takes an offset away", () => {
    const pcm = toPcm(tone(2, 0.3, 0.2), rate)!
    // After the filter has settled.
    expect(Math.abs(mean(pcm.subarray(rate / 2)))).toBeLessThan(0.002 * 32767)
  })

  it("cuts silence off and starts and ends at zero", () => {
    const pcm = toPcm(join(silence(0.4), tone(0.5, 0.5), silence(0.6)), rate)!
    expect(pcm.length / rate).toBeGreaterThan(0.5)
    expect(pcm.length / rate).toBeLessThan(0.6)
    for (const level of [0.1, 0.9]) {
      const bare = toPcm(tone(0.5, level), rate)!
      expect(Math.abs(bare[0]!)).toBe(0)
      expect(Math.abs(bare.at(-1)!)).toBe(0)
      const largestStep = bare.reduce(
        (step, sample, i) => Math.max(step, Math.abs(sample - (bare[i - 1] ?? 0))),
        0,
      )
      // A 220 Hz tone steps by 5.8 % of its level a sample; an edge adds nothing to that.
      expect(largestStep).toBeLessThan(0.062 * level * 32767)
    }
  })

  it("leaves margins that scale with speed", () => {
    const wave = join(silence(1), tone(0.5, 0.5), silence(1))
    const lengthMs = (speed: number) => (1000 * toPcm(wave, rate, speed)!.length) / rate
    const atOne = lengthMs(1)
    for (const [speed, longerMs] of [
      [0.25, 180],
      [0.5, 60],
      [2, -30],
      [4, -45],
    ] as const)
      expect(lengthMs(speed) - atOne).toBeCloseTo(longerMs, 0)
  })

  it("refuses what is not a number, and survives what is no sound", () => {
    expect(toPcm(Float32Array.of(0, Number.NaN, 0), rate)).toBeUndefined()
    expect(toPcm(Float32Array.of(0, Number.POSITIVE_INFINITY), rate)).toBeUndefined()
    expect(toPcm(new Float32Array(0), rate)).toEqual(new Int16Array(0))
    expect(toPcm(silence(0.1), rate)!.every((sample) => sample === 0)).toBe(true)
  })

  it("never passes the ceiling, whatever comes in", () => {
    fc.assert(
      fc.property(fc.float32Array({ noNaN: true, noDefaultInfinity: true, maxLength: 2000 }), (wave) => {
        const pcm = toPcm(wave, rate)
        if (pcm === undefined) return
        expect(pcm.length).toBeLessThanOrEqual(wave.length)
        for (const sample of pcm) expect(Math.abs(sample)).toBeLessThanOrEqual(Math.ceil(ceiling * 32767))
      }),
    )
  })

  it("pauses longer after a sentence than after a comma, and shorter at speed", () => {
    expect(pauseSamples("none", 1, rate)).toBe(0)
    expect(pauseSamples("comma", 1, rate)).toBeLessThan(pauseSamples("clause", 1, rate))
    expect(pauseSamples("clause", 1, rate)).toBeLessThan(pauseSamples("sentence", 1, rate))
    expect(pauseSamples("sentence", 2, rate)).toBe(Math.round(pauseSamples("sentence", 1, rate) / 2))
  })
})
