// The network that hears speech: finite probabilities for any audio, the same as in PyTorch, small state, and weights whose
// checksum is the released one.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { tensorsOf } from "#audio/Safetensors.ts"
import { speechWeights, speechWeightsSum } from "#audio/SpeechWeights.ts"
import { BandEnergies, bandCount, hopSamples } from "#domain/activity/BandEnergies.ts"
import { fftSize, powerSpectrum } from "#domain/activity/PowerSpectrum.ts"
import { SpeechNetwork, speechWeightsOf } from "#domain/activity/SpeechNetwork.ts"

const folder = new URL("../../../models/turns-demo/", import.meta.url)
const bytes = readFileSync(new URL("activity.safetensors", folder))

const probabilities = (samples: Int16Array): ReadonlyArray<number> => {
  const [bands, energies] = [new BandEnergies(), new Float32Array(bandCount)]
  const network = new SpeechNetwork(speechWeights)
  const all: Array<number> = []
  for (let at = 0; at + hopSamples <= samples.length; at += hopSamples) {
    bands.measure(samples, at, energies)
    all.push(network.step(energies))
  }
  return all
}

it("the spectrum is the discrete Fourier transform's", () => {
  const sample = fc.float({ min: -1, max: 1, noNaN: true })
  fc.assert(
    fc.property(fc.array(sample, { minLength: fftSize, maxLength: fftSize }), (given) => {
      const power = new Float32Array(fftSize / 2 + 1)
      powerSpectrum(Float32Array.from(given), power)
      for (const bin of [0, 1, 37, 128, 255, 256]) {
        let [re, im] = [0, 0]
        given.forEach((value, i) => {
          re += value * Math.cos((2 * Math.PI * bin * i) / fftSize)
          im -= value * Math.sin((2 * Math.PI * bin * i) / fftSize)
        })
        expect(power[bin]).toBeCloseTo(re * re + im * im, 2)
      }
    }),
    { numRuns: 20 },
  )
})

it("gives a probability for any audio: extremes, jumps, steps", () => {
  const stretch = fc.record({
    hops: fc.integer({ min: 1, max: 12 }),
    level: fc.constantFrom(0, 1, 3_000, 32_767),
    period: fc.integer({ min: 1, max: 400 }),
  })
  fc.assert(
    fc.property(fc.array(stretch, { minLength: 1, maxLength: 10 }), (stretches) => {
      const samples = stretches.flatMap(({ hops, level, period }) =>
        Array.from({ length: hops * hopSamples }, (_, i) => (i % (2 * period) < period ? level : -level - 1)),
      )
      for (const value of probabilities(Int16Array.from(samples))) {
        expect(value).toBeGreaterThanOrEqual(0)
        expect(value).toBeLessThanOrEqual(1)
      }
    }),
    { numRuns: 50 },
  )
})

it("computes what PyTorch computed for the same audio", () => {
  const reference = JSON.parse(readFileSync(new URL("reference.json", folder), "utf8")) as {
    readonly every: number
    readonly probabilities: ReadonlyArray<number>
  }
  const heads = 44
  const clip = readFileSync(new URL("../whisper-demo-en/eval/01-en-us.wav", folder)).subarray(heads)
  const samples = new Int16Array(clip.length >> 1).map((_, i) => clip.readInt16LE(2 * i))
  const ours = probabilities(samples).filter((_, hop) => hop % reference.every === 0)
  expect(ours.length).toBe(reference.probabilities.length)
  ours.forEach((value, i) => {
    expect(value).toBeCloseTo(reference.probabilities[i]!, 2)
  })
})

it("the weights are those of the checksum, and files with other tensors are refused", () => {
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(speechWeightsSum)
  expect(readFileSync(new URL("SHA256SUMS", folder), "utf8")).toContain(
    `${speechWeightsSum}  activity.safetensors`,
  )
  const tensors = new Map(tensorsOf(bytes))
  expect(() => speechWeightsOf(new Map([...tensors, ["out.bias", new Float32Array(2)]]))).toThrow(
    "tensor out.bias: 2 values where 1 are expected",
  )
  tensors.delete("out.bias")
  expect(() => speechWeightsOf(tensors)).toThrow("tensor out.bias: no values")
  expect(() => tensorsOf(bytes.subarray(0, 40))).toThrow()
})
