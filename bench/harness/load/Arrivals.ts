// When the requests of an open-loop load are due: a Poisson process, as independent users make it. The same seed gives the
// same moments. Pure.
import { Random } from "../random/Random.ts"

/** Stream of random numbers for arrivals, so that they do not depend on the choice of prompts. */
const arrivalStream = 0

/**
 * Moments in milliseconds from the start, ascending: gaps are exponentially distributed with the mean 1 / rate.
 * @param ratePerSecond greater than 0
 * @param untilMs the last moment is before it
 */
export function* poissonArrivals(ratePerSecond: number, untilMs: number, seed: number): Generator<number> {
  const random = new Random(seed, arrivalStream)
  const meanMs = 1000 / ratePerSecond
  let atMs = 0
  for (;;) {
    // In (0, 1], so that the logarithm is finite.
    const uniform = (random.next() + 1) / 2 ** 32
    atMs -= Math.log(uniform) * meanMs
    if (atMs >= untilMs) return
    yield atMs
  }
}
