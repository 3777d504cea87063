// A resampling filter between two integer rates: a sinc with a Kaiser window, in as many phases as the rates need.
// Linear phase: the output is aligned with the input, without delay. Pure and deterministic: float64 sums in a fixed
// order.

export interface FilterShape {
  /** Zero crossings of the sinc on each side of its middle. */
  readonly halfCrossings: number
  /** The Kaiser window's shape: a larger value attenuates aliases more and widens the transition band. */
  readonly beta: number
  /** Edge of the pass band, as a fraction of the lower Nyquist frequency; the rest is the transition band. */
  readonly rollOff: number
}

/** Rates with an odd ratio would need up to 24,000 phases; the nearest of 1,024 is off by 1/2048 of a sample. */
const mostPhases = 1024

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

/** Modified Bessel function of the first kind, order 0. */
const besselI0 = (x: number): number => {
  let sum = 1
  let term = 1
  for (let k = 1; term > sum * 1e-15; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}

/** The kernel at `x` zero crossings from its middle: 1 at 0, and 0 from `halfCrossings` on. */
const kaiserSinc = ({ beta, halfCrossings }: FilterShape): ((x: number) => number) => {
  const middle = besselI0(beta)
  return (x) => {
    const at = x / halfCrossings
    if (Math.abs(at) >= 1) return 0
    const window = besselI0(beta * Math.sqrt(1 - at * at)) / middle
    return x === 0 ? 1 : (window * Math.sin(Math.PI * x)) / (Math.PI * x)
  }
}

export class PolyphaseFilter {
  /** Output samples for every `down` input samples. */
  readonly up: number
  readonly down: number
  /** Number of input samples on each side that an output sample depends on. */
  readonly reach: number
  readonly #phases: number
  /** Row p: weights of the input samples 1 − reach … reach around a point p / phases after a sample. */
  readonly #weights: Float64Array
  /** Of output samples 0 to up − 1: the first input sample that each depends on, and where its row of weights begins. */
  readonly #firsts: Int32Array
  readonly #rows: Int32Array

  constructor(fromHz: number, toHz: number, shape: FilterShape) {
    const divisor = commonDivisor(fromHz, toHz)
    this.up = toHz / divisor
    this.down = fromHz / divisor
    this.#phases = Math.min(this.up, mostPhases)
    // Relative to the input's rate: where the rate goes down, the kernel is stretched to the output's Nyquist frequency.
    const cutoff = Math.min(1, this.up / this.down) * shape.rollOff
    this.reach = Math.ceil(shape.halfCrossings / cutoff)
    const taps = 2 * this.reach
    const kernel = kaiserSinc(shape)
    this.#weights = new Float64Array(this.#phases * taps)
    for (let p = 0; p < this.#phases; p++) {
      for (let k = 0; k < taps; k++)
        this.#weights[p * taps + k] = cutoff * kernel((k + 1 - this.reach - p / this.#phases) * cutoff)
    }
    this.#firsts = new Int32Array(this.up)
    this.#rows = new Int32Array(this.up)
    for (let n = 0; n < this.up; n++) {
      const nearest = Math.round((((n * this.down) % this.up) * this.#phases) / this.up)
      const whole = this.positionOf(n) + (nearest === this.#phases ? 1 : 0)
      this.#firsts[n] = whole + 1 - this.reach
      this.#rows[n] = (nearest % this.#phases) * taps
    }
  }

  /** The input sample at or before output sample `n`. */
  positionOf(n: number): number {
    return Math.floor((n * this.down) / this.up)
  }

  /** Output sample `n`, from `input` whose first sample is number `start` of the stream; samples outside count as 0. */
  sampleAt(n: number, input: Float32Array | Float64Array | Int16Array, start: number): number {
    const turn = n % this.up
    const first = ((n - turn) / this.up) * this.down + this.#firsts[turn]! - start
    const row = this.#rows[turn]!
    const to = Math.min(2 * this.reach, input.length - first)
    let sum = 0
    for (let k = Math.max(0, -first); k < to; k++) sum += input[first + k]! * this.#weights[row + k]!
    return sum
  }

  /**
   * Output samples from `n` on fill `out`: the same as of `sampleAt`, four at a time where `input` has all that they depend on. An addition
   * waits for the one before it in the same sum; the processor makes those of the other three meanwhile. Each is summed in the same order.
   */
  fill(n: number, input: Float64Array, start: number, out: Float64Array): void {
    const { down, up } = this
    const taps = 2 * this.reach
    const weights = this.#weights
    const firstOf = (m: number): number => ((m - (m % up)) / up) * down + this.#firsts[m % up]! - start
    const rowOf = (m: number): number => this.#rows[m % up]!
    let at = 0
    for (; at + 4 <= out.length; at += 4) {
      const m = n + at
      const [firstA, firstB, firstC, firstD] = [firstOf(m), firstOf(m + 1), firstOf(m + 2), firstOf(m + 3)]
      const [rowA, rowB, rowC, rowD] = [rowOf(m), rowOf(m + 1), rowOf(m + 2), rowOf(m + 3)]
      if (firstA < 0 || firstD + taps > input.length) break
      let [a, b, c, d] = [0, 0, 0, 0]
      for (let k = 0; k < taps; k++) {
        a += input[firstA + k]! * weights[rowA + k]!
        b += input[firstB + k]! * weights[rowB + k]!
        c += input[firstC + k]! * weights[rowC + k]!
        d += input[firstD + k]! * weights[rowD + k]!
      }
      out[at] = a
      out[at + 1] = b
      out[at + 2] = c
      out[at + 3] = d
    }
    for (; at < out.length; at++) out[at] = this.sampleAt(n + at, input, start)
  }
}
