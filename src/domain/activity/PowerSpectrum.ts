// The power of each frequency in a short stretch of audio: a fast Fourier transform of 512 samples in plain TypeScript. One takes
// 5 µs, less than to call a compiled library with copies of its input and output. Pure; used by one caller at a time.

/** Samples of a transform, a power of two. */
export const fftSize = 512
const half = fftSize / 2

// A real transform of 512 is a complex one of 256, of even samples as real and odd ones as imaginary parts.
const reversed = Uint16Array.from({ length: half }, (_, i) => {
  let result = 0
  for (let bit = 1, value = i; bit < half; bit <<= 1, value >>= 1) result = (result << 1) | (value & 1)
  return result
})
const cosines = Float64Array.from({ length: half }, (_, i) => Math.cos((2 * Math.PI * i) / fftSize))
const sines = Float64Array.from({ length: half }, (_, i) => -Math.sin((2 * Math.PI * i) / fftSize))
const re = new Float64Array(half)
const im = new Float64Array(half)

/** Decimation in time over `re` and `im`, whose values are in bit-reversed order. */
const transform = (): void => {
  for (let size = 2; size <= half; size *= 2) {
    const middle = size / 2
    const stride = fftSize / size
    for (let start = 0; start < half; start += size) {
      for (let k = 0; k < middle; k++) {
        const cosine = cosines[k * stride]!
        const sine = sines[k * stride]!
        const a = start + k
        const b = a + middle
        const real = re[b]! * cosine - im[b]! * sine
        const imaginary = re[b]! * sine + im[b]! * cosine
        re[b] = re[a]! - real
        im[b] = im[a]! - imaginary
        re[a] = re[a]! + real
        im[a] = im[a]! + imaginary
      }
    }
  }
}

/**
 * @param samples of length fftSize
 * @param power of length fftSize / 2 + 1: receives the squared magnitudes
 */
export const powerSpectrum = (samples: Float32Array, power: Float32Array): void => {
  for (let i = 0; i < half; i++) {
    const from = 2 * reversed[i]!
    re[i] = samples[from]!
    im[i] = samples[from + 1]!
  }
  transform()
  for (let k = 0; k <= half; k++) {
    const a = k % half
    const b = (half - k) % half
    const evenRe = (re[a]! + re[b]!) / 2
    const evenIm = (im[a]! - im[b]!) / 2
    const oddRe = (im[a]! + im[b]!) / 2
    const oddIm = (re[b]! - re[a]!) / 2
    const cosine = k === half ? -1 : cosines[k]!
    const sine = k === half ? 0 : sines[k]!
    const real = evenRe + oddRe * cosine - oddIm * sine
    const imaginary = evenIm + oddRe * sine + oddIm * cosine
    power[k] = real * real + imaginary * imaginary
  }
}
