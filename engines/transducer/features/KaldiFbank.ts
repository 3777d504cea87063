// The filter bank features of Kaldi, as the recognisers of icefall (Zipformer) take them: 80 bins, windows of 25 ms every 10 ms, mean
// removed, pre-emphasis 0.97 inside the window, "povey" window, power, triangles on the HTK mel scale, natural logarithm. Frame i is centred in
// its hop (`snip_edges` false): it begins 120 samples before sample 160 · i. Outside of the audio its samples are mirrored.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as RealFft from "../../shared/listening/RealFft.ts"

interface KaldiFbank {
  readonly melBins: number
  /** Frames `from` to `to` (exclusive), time first: [to − from, melBins]. */
  readonly frames: (samples: Float32Array, from: number, to: number) => Float32Array
}

const rateHz = 16_000
const hop = 160
const size = 400
const fftSize = 512
const preemphasis = 0.97
const lowHz = 20
/** 400 Hz below half of the sample rate: the setting of icefall's recipes. */
const highHz = 7_600
/** The smallest value whose logarithm is taken: the step of single precision at 1. */
const floor = 2 ** -23

/** Samples of a frame before sample `hop` · frame, and behind its hop's beginning. */
const frameBefore = (size - hop) / 2
export const frameAfter = size - frameBefore

const toMel = (hz: number): number => 1127 * Math.log(1 + hz / 700)

/** Hann to the power of 0.85. */
const povey = (): Float64Array =>
  Float64Array.from(
    { length: size },
    (_, i) => (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (size - 1))) ** 0.85,
  )

interface Triangle {
  readonly firstBin: number
  readonly weights: Float64Array
}

const triangles = (melBins: number): ReadonlyArray<Triangle> => {
  const low = toMel(lowHz)
  const step = (toMel(highHz) - low) / (melBins + 1)
  return Array.from({ length: melBins }, (_, mel) => {
    const left = low + mel * step
    const weights: Array<number> = []
    let firstBin = 0
    for (let bin = 0; bin < fftSize / 2; bin++) {
      const at = (toMel((bin * rateHz) / fftSize) - left) / step
      if (at <= 0 || at >= 2) continue
      if (weights.length === 0) firstBin = bin
      weights.push(at <= 1 ? at : 2 - at)
    }
    return { firstBin, weights: Float64Array.from(weights) }
  })
}

/** The index inside of `length` samples that stands for one outside: the audio is mirrored at its ends, the end samples included. */
const mirrored = (at: number, length: number): number => {
  let index = at
  while (index < 0 || index >= length) index = index < 0 ? -index - 1 : 2 * length - 1 - index
  return index
}

export const make = (melBins: number): Effect.Effect<KaldiFbank, never, Scope.Scope> =>
  Effect.map(RealFft.make(fftSize), (fft) => {
    const window = povey()
    const filters = triangles(melBins)
    const frame = new Float64Array(size)
    return {
      melBins,
      frames: (samples, from, to) => {
        const { input, output } = fft.views()
        const values = new Float32Array((to - from) * melBins)
        input.fill(0)
        for (let at = from; at < to; at++) {
          if (samples.length === 0) break
          let mean = 0
          for (let i = 0; i < size; i++) {
            frame[i] = samples[mirrored(at * hop - frameBefore + i, samples.length)]!
            mean += frame[i]!
          }
          mean /= size
          for (let i = size - 1; i >= 0; i--) {
            const before = frame[Math.max(0, i - 1)]! - mean
            input[i] = (frame[i]! - mean - preemphasis * before) * window[i]!
          }
          fft.transform()
          for (let mel = 0; mel < melBins; mel++) {
            const { firstBin, weights } = filters[mel]!
            let sum = 0
            for (let i = 0; i < weights.length; i++) {
              const bin = firstBin + i
              sum += weights[i]! * (output[2 * bin]! ** 2 + output[2 * bin + 1]! ** 2)
            }
            values[(at - from) * melBins + mel] = Math.log(Math.max(sum, floor))
          }
        }
        return values
      },
    }
  })
