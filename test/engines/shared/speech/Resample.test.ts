// The resampler of reference clips: level, aliases, alignment, and repeatability.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { checkClip, encoderAudio, maxClipSeconds } from "#engines/shared/speech/ReferenceClip.ts"
import { resample } from "#engines/shared/speech/Resample.ts"

const tone = (hz: number, rateHz: number, seconds: number, level = 0.5): Float32Array =>
  Float32Array.from(
    { length: Math.round(rateHz * seconds) },
    (_, i) => level * Math.sin((2 * Math.PI * hz * i) / rateHz),
  )

const decibels = (ratio: number): number => 20 * Math.log10(ratio)
const rms = (samples: Float32Array): number =>
  Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length)
/** Without the edges, where the kernel reaches past the clip. */
const inner = (samples: Float32Array): Float32Array => samples.subarray(600, samples.length - 600)

describe("resample", () => {
  it("keeps a tone, in place, at every rate", () => {
    for (const rateHz of [8000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000]) {
      const hz = rateHz === 8000 ? 1000 : 3000
      const out = inner(resample(tone(hz, rateHz, 0.3), rateHz, 24_000))
      const wanted = inner(tone(hz, 24_000, 0.3))
      const error = wanted.map((x, i) => x - out[i]!)
      expect(decibels(rms(error) / rms(wanted))).toBeLessThan(-70)
    }
  })

  it("leaves no alias of what the lower rate cannot hold", () => {
    for (const hz of [13_500, 17_000, 23_000]) {
      const out = inner(resample(tone(hz, 48_000, 0.3), 48_000, 24_000))
      expect(decibels(rms(out) / rms(tone(hz, 48_000, 0.3)))).toBeLessThan(-80)
    }
  })

  it("has the length that the rates ask for and no wild sample", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 4000, max: 192_000 }),
        fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { maxLength: 400 }),
        (rateHz, values) => {
          const out = resample(Float32Array.from(values), rateHz, 24_000)
          expect(out.length).toBe(
            rateHz === 24_000 ? values.length : Math.ceil((values.length * 24_000) / rateHz),
          )
          for (const sample of out) expect(Math.abs(sample)).toBeLessThan(4)
        },
      ),
      { numRuns: 30 },
    )
  })
})

const pcm = (samples: Float32Array): Int16Array => Int16Array.from(samples, (x) => Math.round(x * 32767))

describe("reference clip", () => {
  it("is refused in the caller's words", () => {
    const problemOf = (clip: Int16Array, rateHz: number): string => {
      const checked = checkClip(clip, rateHz)
      return "problem" in checked ? checked.problem : "none"
    }
    expect(problemOf(new Int16Array(48_000), 16_000)).toContain("silent")
    expect(problemOf(new Int16Array(0), 16_000)).toContain("silent")
    expect(problemOf(pcm(tone(200, 16_000, 0.3)), 16_000)).toContain("0.30 s of speech")
    for (const rateHz of [0, -1, 100, 1e9, Number.NaN]) {
      expect(problemOf(pcm(tone(200, 16_000, 1)), rateHz)).toContain("sample rate")
    }
    expect(problemOf(pcm(tone(200, 16_000, 1)), 16_000)).toBe("none")
  })

  it("loses its silent edges and what is too long", () => {
    const clip = new Int16Array(16_000 * 40)
    clip.set(pcm(tone(200, 16_000, 2)), 16_000)
    const short = checkClip(clip, 16_000)
    if ("problem" in short) throw new Error(short.problem)
    expect(short.speech.length / 16_000).toBeCloseTo(2, 1)
    expect(encoderAudio(short.speech, 16_000, 24_000).length / 24_000).toBeCloseTo(2, 1)
    const long = checkClip(pcm(tone(200, 8000, maxClipSeconds + 5)), 8000)
    expect("speech" in long && long.speech.length / 8000).toBe(maxClipSeconds)
  })
})
