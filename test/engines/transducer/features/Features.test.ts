// Both kinds of features against their definitions in double precision, with a direct Fourier transform; and parts against the whole.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as NemoMel from "#engines/shared/listening/NemoMel.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import * as KaldiFbank from "#engines/transducer/features/KaldiFbank.ts"

const sound = (length: number): Float32Array => {
  const random = seededRandom(length)
  return Float32Array.from({ length }, (_, i) => 0.2 * (random() - 0.5) + 0.3 * Math.sin(i / 5) + 0.05)
}

const cos = Float64Array.from({ length: 512 }, (_, n) => Math.cos((2 * Math.PI * n) / 512))

const powerOf = (frame: ReadonlyArray<number>): Float64Array =>
  Float64Array.from({ length: 257 }, (_, bin) => {
    let re = 0
    let im = 0
    frame.forEach((value, n) => {
      re += value * cos[(bin * n) % 512]!
      im -= value * cos[(bin * n + 384) % 512]!
    })
    return re * re + im * im
  })

/** Kaldi's definition: frames centred in their hop, mirrored ends, mean removed, emphasis in the frame, povey window, HTK triangles. */
const kaldi = (samples: Float32Array, from: number, to: number): ReadonlyArray<number> => {
  const mel = (hz: number) => 1127 * Math.log(1 + hz / 700)
  const values: Array<number> = []
  for (let frame = from; frame < to; frame++) {
    const raw = Array.from({ length: 400 }, (_, i) => {
      let at = frame * 160 + 80 - 200 + i
      if (at < 0) at = -1 - at
      if (at >= samples.length) at = 2 * samples.length - 1 - at
      return samples[at]!
    })
    const mean = raw.reduce((a, b) => a + b, 0) / 400
    const centred = raw.map((value) => value - mean)
    const windowed = centred.map(
      (value, i) =>
        (value - 0.97 * centred[i === 0 ? 0 : i - 1]!) *
        (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / 399)) ** 0.85,
    )
    const power = powerOf(windowed)
    for (let bin = 0; bin < 80; bin++) {
      const edge = (n: number) => mel(20) + ((mel(7600) - mel(20)) / 81) * n
      let sum = 0
      for (let k = 0; k < 256; k++) {
        const m = mel(k * 31.25)
        const weight = Math.min(
          (m - edge(bin)) / (edge(bin + 1) - edge(bin)),
          (edge(bin + 2) - m) / (edge(bin + 2) - edge(bin + 1)),
        )
        if (weight > 0) sum += weight * power[k]!
      }
      values.push(Math.log(Math.max(sum, 1.1920928955078125e-7)))
    }
  }
  return values
}

const nemo = (samples: Float32Array, from: number, to: number): ReadonlyArray<number> => {
  const toMel = (hz: number) => (hz < 1000 ? (3 * hz) / 200 : 15 + (27 * Math.log(hz / 1000)) / Math.log(6.4))
  const toHz = (mel: number) => (mel < 15 ? (200 * mel) / 3 : 1000 * 6.4 ** ((mel - 15) / 27))
  const edges = Array.from({ length: 130 }, (_, i) => toHz((toMel(8000) * i) / 129))
  const y = Array.from(samples, (sample, i) => sample - (i === 0 ? 0 : 0.97 * samples[i - 1]!))
  const values: Array<number> = []
  for (let frame = from; frame < to; frame++) {
    const windowed = Array.from({ length: 512 }, (_, n) => {
      const inside = n - 56
      if (inside < 0 || inside >= 400) return 0
      return (y[frame * 160 - 256 + n] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * inside) / 399))
    })
    const power = powerOf(windowed)
    for (let mel = 0; mel < 128; mel++) {
      const [left, peak, right] = [edges[mel]!, edges[mel + 1]!, edges[mel + 2]!]
      let sum = 0
      power.forEach((value, bin) => {
        const hz = bin * 31.25
        sum +=
          ((Math.max(0, Math.min((hz - left) / (peak - left), (right - hz) / (right - peak))) * 2) /
            (right - left)) *
          value
      })
      values.push(Math.log(sum + 2 ** -24))
    }
  }
  return values
}

const worst = (a: Float32Array, b: ReadonlyArray<number>): number =>
  b.reduce((most, value, i) => Math.max(most, Math.abs(value - a[i]!)), 0)

const nemoOptions = {
  melBins: 128,
  rateHz: 16_000,
  hopSamples: 160,
  fftSize: 512,
  windowSamples: 400,
  preemphasis: 0.97,
}

const impulse = Float32Array.from({ length: 3_200 }, (_, i) => (i === 1_000 ? 1 : 0))

describe("features", () => {
  it.effect("of Kaldi agree with the definition, at both ends too", () =>
    Effect.gen(function* () {
      const fbank = yield* KaldiFbank.make(80)
      for (const samples of [sound(3_200), impulse, new Float32Array(2_000).fill(0.25)])
        expect(worst(fbank.frames(samples, 0, 13), kaldi(samples, 0, 13))).toBeLessThan(2e-3)
    }),
  )

  it.effect("of NeMo agree with the definition, at both ends too", () =>
    Effect.gen(function* () {
      const mel = yield* NemoMel.make(nemoOptions)
      for (const samples of [sound(3_210), impulse, new Float32Array(2_000).fill(0.25)])
        expect(worst(mel.frames(samples, 0, 21), nemo(samples, 0, 21))).toBeLessThan(2e-3)
    }),
  )

  it.effect("of a part of the audio are those of the whole, bit for bit, once its right edge is there", () =>
    Effect.gen(function* () {
      const mel = yield* NemoMel.make(nemoOptions)
      const fbank = yield* KaldiFbank.make(80)
      const samples = sound(16_000)
      const wholeMel = mel.frames(samples, 0, 90)
      const wholeFbank = fbank.frames(samples, 0, 90)
      for (let from = 0; from < 80; from += 7) {
        const to = from + 9
        // The last frame of NeMo reaches 200 samples behind its middle, that of Kaldi 280 behind its hop's beginning.
        const little = samples.subarray(0, 160 * (to - 1) + 200)
        expect(mel.frames(little, from, to)).toEqual(wholeMel.slice(from * 128, to * 128))
        const other = samples.subarray(0, 160 * (to - 1) + 280)
        expect(fbank.frames(other, from, to)).toEqual(wholeFbank.slice(from * 80, to * 80))
      }
    }),
  )
})
