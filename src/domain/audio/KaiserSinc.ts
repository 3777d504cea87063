// The kernel of a resampler: a sinc with a Kaiser window. Pure.

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

/** The kernel as a function of `x`, in zero crossings from the middle: 1 at 0, and 0 from `halfCrossings` on. */
export const kaiserSinc = (halfCrossings: number, beta: number): ((x: number) => number) => {
  const middle = besselI0(beta)
  return (x) => {
    const at = x / halfCrossings
    if (Math.abs(at) >= 1) return 0
    const window = besselI0(beta * Math.sqrt(1 - at * at)) / middle
    return x === 0 ? 1 : (window * Math.sin(Math.PI * x)) / (Math.PI * x)
  }
}
