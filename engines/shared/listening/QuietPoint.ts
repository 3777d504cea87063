// Where to cut audio that is too long for one decoding: at its quietest place. Pure.

interface CutOptions {
  /** Longest piece. */
  readonly maxSamples: number
  /** Length, before the end of the longest piece, in which a quiet place is searched. */
  readonly searchSamples: number
  readonly rateHz: number
  /** True if these samples are the end of the audio. */
  readonly last: boolean
}

/** Length of the window whose energy is compared, 100 ms: the rule of the published long-audio recipe. */
const quietMs = 100
/** Steps of the search, 10 ms: one feature frame. */
const stepMs = 10

/** Samples of the first piece: all of them if they fit and nothing follows, else up to a quiet place. */
export const firstPiece = (samples: Float32Array, options: CutOptions): number => {
  if (options.last && samples.length <= options.maxSamples) return samples.length
  const to = Math.min(samples.length, options.maxSamples)
  return quietPoint(samples, Math.max(0, to - options.searchSamples), to, options.rateHz)
}

/** The middle of the quietest 100 ms between two sample positions; `to` if there is less than that. */
const quietPoint = (samples: Float32Array, from: number, to: number, rateHz: number): number => {
  const width = (quietMs * rateHz) / 1000
  const step = (stepMs * rateHz) / 1000
  let best = Number.POSITIVE_INFINITY
  let cut = to
  // A window is a whole number of steps, so each sample is squared once.
  const energies = stepEnergies(samples, from, to, step)
  const steps = quietMs / stepMs
  for (let start = from, at = 0; start + width <= to; start += step, at++) {
    let energy = 0
    for (let i = at; i < at + steps; i++) energy += energies[i]!
    // Of equally quiet places the last one is taken: longer, so fewer pieces.
    if (energy <= best) {
      best = energy
      cut = start + width / 2
    }
  }
  return cut
}

/** Sums of squares of the whole steps between two positions. */
const stepEnergies = (samples: Float32Array, from: number, to: number, step: number): Float64Array => {
  const energies = new Float64Array(Math.max(0, Math.floor((to - from) / step)))
  for (let at = 0, i = from; at < energies.length; at++) {
    let energy = 0
    for (const end = i + step; i < end; i++) energy += samples[i]! * samples[i]!
    energies[at] = energy
  }
  return energies
}
