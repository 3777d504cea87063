// The small network that tells from band energies whether someone speaks: a layer over three hops, two gated recurrent units (GRU)
// and one output, 15,809 parameters. Pure: it computes one hop at a time from the state of a stream. The weights are trained by
// models/train/turns and read by src/audio/SpeechWeights.ts.
import { bandCount } from "./BandEnergies.ts"

/** Values of each layer. */
const width = 32
/** Of the log10 energies; the same as in models/train/turns/network.py. */
const mean = -5
const deviation = 1.6
/** log10 energy of digital silence, which precedes a stream. */
const quietest = -9

const shapes = {
  "front.weight": width * 3 * bandCount,
  "front.bias": width,
  "first.weight_ih_l0": 3 * width * width,
  "first.weight_hh_l0": 3 * width * width,
  "first.bias_ih_l0": 3 * width,
  "first.bias_hh_l0": 3 * width,
  "second.weight_ih_l0": 3 * width * width,
  "second.weight_hh_l0": 3 * width * width,
  "second.bias_ih_l0": 3 * width,
  "second.bias_hh_l0": 3 * width,
  "out.weight": width,
  "out.bias": 1,
}

/** Matrices in rows of their outputs; of a GRU the rows of reset, update and new value, in PyTorch's order. */
export type SpeechWeights = Readonly<Record<keyof typeof shapes, Float32Array>>

/** Checks names and sizes; fails with what is wrong. */
export const speechWeightsOf = (tensors: ReadonlyMap<string, Float32Array>): SpeechWeights => {
  for (const [name, size] of Object.entries(shapes)) {
    const found = tensors.get(name)?.length
    if (found !== size) throw new Error(`tensor ${name}: ${found ?? "no"} values where ${size} are expected`)
  }
  return Object.fromEntries(tensors) as unknown as SpeechWeights
}

/**
 * out = weight · x + bias. Four rows at a time: an addition waits for the one before it in the same row, and the processor makes those of
 * other rows meanwhile, in two thirds of the time (measured). Each row is summed in the same order, so no bit differs.
 */
const linear = (weight: Float32Array, bias: Float32Array, x: Float32Array, out: Float32Array): void => {
  const size = x.length
  let row = 0
  for (; row + 4 <= out.length; row += 4) {
    const at = row * size
    let [a, b, c, d] = [bias[row]!, bias[row + 1]!, bias[row + 2]!, bias[row + 3]!]
    for (let i = 0; i < size; i++) {
      const value = x[i]!
      a += weight[at + i]! * value
      b += weight[at + size + i]! * value
      c += weight[at + 2 * size + i]! * value
      d += weight[at + 3 * size + i]! * value
    }
    out[row] = a
    out[row + 1] = b
    out[row + 2] = c
    out[row + 3] = d
  }
  for (; row < out.length; row++) {
    let sum = bias[row]!
    for (let i = 0; i < size; i++) sum += weight[row * size + i]! * x[i]!
    out[row] = sum
  }
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

const fromInput = new Float32Array(3 * width)
const fromState = new Float32Array(3 * width)

/** One step of a GRU; `state` becomes the new one. */
const gated = (
  inWeight: Float32Array,
  inBias: Float32Array,
  stateWeight: Float32Array,
  stateBias: Float32Array,
  x: Float32Array,
  state: Float32Array,
): void => {
  linear(inWeight, inBias, x, fromInput)
  linear(stateWeight, stateBias, state, fromState)
  for (let i = 0; i < width; i++) {
    const reset = sigmoid(fromInput[i]! + fromState[i]!)
    const update = sigmoid(fromInput[width + i]! + fromState[width + i]!)
    const fresh = Math.tanh(fromInput[2 * width + i]! + reset * fromState[2 * width + i]!)
    state[i] = (1 - update) * fresh + update * state[i]!
  }
}

const hidden = new Float32Array(width)
const logit = new Float32Array(1)

/** The state of one stream. */
export class SpeechNetwork {
  readonly #weights: SpeechWeights
  /** The energies of three hops, the newest last. */
  readonly #recent = new Float32Array(3 * bandCount).fill((quietest - mean) / deviation)
  readonly #first = new Float32Array(width)
  readonly #second = new Float32Array(width)

  constructor(weights: SpeechWeights) {
    this.#weights = weights
  }

  /** Takes the energies of the next hop; the probability of speech in the hop before it, 0 to 1. */
  step(energies: Float32Array): number {
    const first = this.#first
    const recent = this.#recent
    const second = this.#second
    const weights = this.#weights
    recent.copyWithin(0, bandCount)
    for (let i = 0; i < bandCount; i++) recent[2 * bandCount + i] = (energies[i]! - mean) / deviation
    linear(weights["front.weight"], weights["front.bias"], recent, hidden)
    for (let i = 0; i < width; i++) if (hidden[i]! < 0) hidden[i] = 0
    gated(
      weights["first.weight_ih_l0"],
      weights["first.bias_ih_l0"],
      weights["first.weight_hh_l0"],
      weights["first.bias_hh_l0"],
      hidden,
      first,
    )
    gated(
      weights["second.weight_ih_l0"],
      weights["second.bias_ih_l0"],
      weights["second.weight_hh_l0"],
      weights["second.bias_hh_l0"],
      first,
      second,
    )
    linear(weights["out.weight"], weights["out.bias"], second, logit)
    return sigmoid(logit[0]!)
  }
}
