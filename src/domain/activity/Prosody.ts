// How the newest speech sounds at its end: pitch and loudness against what was before, and how long the last syllable was held. Pure;
// one value for each stream of audio, of which it keeps two numbers for each of the newest 10 ms hops.
import { hopSamples } from "./BandEnergies.ts"

/** Speech that an ending is compared with: 2 s. A pause of the same length may follow it. */
const lookHops = 200
const keptHops = 2 * lookHops

/** Pitch is found at 4 kHz, from the mean of four samples each. */
const decimation = 4
const pitchRateHz = 16_000 / decimation
const hopPoints = hopSamples / decimation
/** Periods of 70 to 400 Hz, in samples of 4 kHz. */
const shortest = 10
const longest = 57
/** A pitch is looked for in 40 ms and the longest period before. */
const windowPoints = 160
const keptPoints = windowPoints + longest
/** Samples that resemble those a period before by at least this are voiced (1: repeated exactly). A usual choice. */
const leastLikeness = 0.6
/** A shorter period is taken instead of the likeliest if it is nearly as likely: twice a period is one, too. */
const nearly = 0.9
/** Mean square of a hop below which no pitch is looked for: -66 dBFS. */
const faint = 2.5e-7

/** Values that `ending` gives, each about -3 to 3. */
export const prosodyValues = 13

export class Prosody {
  readonly #points = new Float32Array(keptPoints)
  readonly #likeness = new Float32Array(longest + 2)
  /** log2 of the pitch in Hz of each hop; 0: unvoiced. */
  readonly #pitches = new Float32Array(keptHops)
  /** Level of each hop in bels below full scale, negative. */
  readonly #levels = new Float32Array(keptHops)
  #hops = 0

  /** Takes a hop: s16 of 16 kHz. */
  push(samples: Int16Array): void {
    const points = this.#points
    points.copyWithin(0, hopPoints)
    let power = 1e-9
    for (let i = 0; i < hopPoints; i++) {
      let sum = 0
      for (let k = 0; k < decimation; k++) {
        const sample = samples[i * decimation + k]! / 32_768
        sum += sample
        power += (sample * sample) / hopSamples
      }
      points[keptPoints - hopPoints + i] = sum / decimation
    }
    const at = this.#hops++ % keptHops
    this.#levels[at] = Math.log10(power)
    this.#pitches[at] = power < faint ? 0 : this.#pitch()
  }

  /** log2 of the pitch of the newest 40 ms, by autocorrelation; 0: unvoiced. */
  #pitch(): number {
    const likeness = this.#likeness
    const points = this.#points
    let power = 0
    for (let i = longest; i < keptPoints; i++) power += points[i]! * points[i]!
    let best = 0
    for (let lag = shortest - 1; lag <= longest; lag++) {
      let [product, before] = [0, 1e-12]
      for (let i = longest; i < keptPoints; i++) {
        const earlier = points[i - lag]!
        product += points[i]! * earlier
        before += earlier * earlier
      }
      likeness[lag] = product / Math.sqrt(power * before + 1e-18)
      if (likeness[lag]! > best) best = likeness[lag]!
    }
    if (best < leastLikeness) return 0
    for (let lag = shortest; lag < longest; lag++) {
      const [before, here, after] = [likeness[lag - 1]!, likeness[lag]!, likeness[lag + 1]!]
      if (here < best * nearly || before > here || after > here) continue
      // The top of the parabola through the three.
      const bend = before - 2 * here + after
      const shift = bend === 0 ? 0 : (before - after) / (2 * bend)
      return Math.log2(pitchRateHz / (lag + shift))
    }
    return 0
  }

  /** How the speech ended after which there were so many hops of silence. */
  ending(quietHops: number): Float32Array {
    const end = Math.max(0, this.#hops - Math.min(quietHops, keptHops - lookHops))
    const from = Math.max(0, end - lookHops, this.#hops - keptHops)
    const voiced: Array<number> = []
    const levels: Array<number> = []
    for (let hop = from; hop < end; hop++) {
      const pitch = this.#pitches[hop % keptHops]!
      if (pitch > 0) voiced.push(pitch)
      levels.push(this.#levels[hop % keptHops]!)
    }
    const loud = quantile(levels, 0.9)
    const [low, middle, high] = [quantile(voiced, 0.1), quantile(voiced, 0.5), quantile(voiced, 0.9)]
    const isVoiced = (hop: number) => hop >= from && this.#pitches[hop % keptHops]! > 0
    let lastVoiced = end - 1
    while (lastVoiced >= from && !isVoiced(lastVoiced)) lastVoiced--
    let held = lastVoiced
    while (isVoiced(held)) held--
    const voicedHops = [0, 10, 20].map((back) => {
      let count = 0
      for (let hop = end - back - 10; hop < end - back; hop++) if (isVoiced(hop)) count++
      return count / 10
    })
    const last = mean(voiced.slice(-5))
    const before = mean(voiced.slice(-16, -9))
    const level = (first: number, behind: number) => mean(levels.slice(first, behind)) - loud
    return Float32Array.of(
      4 * (last - middle),
      4 * (last - low),
      4 * (last - before),
      2 * (high - low),
      level(-10, levels.length),
      level(-20, -10),
      level(-40, -20),
      level(-3, levels.length) - level(-10, -3),
      Math.min(50, lastVoiced - held) / 20,
      Math.min(40, end - 1 - lastVoiced) / 20,
      voicedHops[0]!,
      voicedHops[1]! + voicedHops[2]!,
      voiced.length / lookHops,
    )
  }
}

const mean = (values: ReadonlyArray<number>): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(share * values.length)] ?? 0
