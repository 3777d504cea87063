// The Slaney mel filter bank: triangles on a scale that is linear to 1 kHz and logarithmic above, each divided by
// its width. Pure.

/** One triangle: `weights[i]` belongs to FFT bin `firstBin + i`; bins outside have weight 0. */
export interface MelFilter {
  readonly firstBin: number
  readonly weights: Float32Array
}

export interface MelFilterOptions {
  readonly melBins: number
  readonly fftSize: number
  readonly rateHz: number
}

// Slaney's Auditory Toolbox: 200/3 Hz for each mel up to 1 kHz (mel 15), then 27 steps for a factor of 6.4.
const hzPerMel = 200 / 3
const breakHz = 1000
const breakMel = breakHz / hzPerMel
const logStep = Math.log(6.4) / 27

export const hzToMel = (hz: number): number =>
  hz < breakHz ? hz / hzPerMel : breakMel + Math.log(hz / breakHz) / logStep

export const melToHz = (mel: number): number =>
  mel < breakMel ? mel * hzPerMel : breakHz * Math.exp(logStep * (mel - breakMel))

/** From 0 to half of the rate. */
export const melFilters = ({ fftSize, melBins, rateHz }: MelFilterOptions): ReadonlyArray<MelFilter> => {
  const step = hzToMel(rateHz / 2) / (melBins + 1)
  const edges = Array.from({ length: melBins + 2 }, (_, i) => melToHz(i * step))
  const bins = fftSize / 2 + 1
  return Array.from({ length: melBins }, (_, mel) => {
    const [left, peak, right] = edges.slice(mel, mel + 3) as [number, number, number]
    const area = 2 / (right - left)
    const weight = (bin: number) => {
      const hz = (bin * rateHz) / fftSize
      return area * Math.max(0, Math.min((hz - left) / (peak - left), (right - hz) / (right - peak)))
    }
    let first = 0
    while (first < bins && weight(first) === 0) first++
    // A triangle narrower than the bin spacing may contain no bin; then all its weights are 0.
    if (first === bins) return { firstBin: 0, weights: new Float32Array(0) }
    let end = first
    while (end < bins && weight(end) > 0) end++
    return {
      firstBin: first,
      weights: Float32Array.from({ length: end - first }, (_, i) => weight(first + i)),
    }
  })
}
