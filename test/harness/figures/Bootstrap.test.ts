// Confidence intervals by resampling.
import { expect, it } from "vitest"
import { intervalsOf } from "#harness/figures/Bootstrap.ts"
import { Random } from "#harness/random/Random.ts"
import { inLong } from "../../support/groups/Runs.ts"

/** Exponential values with mean 100. */
const exponential = (count: number, seed: number): ReadonlyArray<number> => {
  const random = new Random(seed, 0)
  return Array.from({ length: count }, () => -100 * Math.log((random.next() + 1) / 2 ** 32))
}

it("covers the true mean and median about as often as it says", inLong, () => {
  const trials = 200
  let means = 0
  let medians = 0
  for (let seed = 0; seed < trials; seed++) {
    const [mean, median] = intervalsOf(exponential(200, seed), ["mean", 50])
    if (mean!.low <= 100 && 100 <= mean!.high) means++
    if (median!.low <= 100 * Math.LN2 && 100 * Math.LN2 <= median!.high) medians++
  }
  // 95 % are expected; a standard deviation of the count is 1.5 %, and resampling covers a little less.
  expect(means / trials).toBeGreaterThan(0.86)
  expect(medians / trials).toBeGreaterThan(0.86)
  expect(means / trials).toBeLessThan(1)
})

it("is wider where requests that follow each other are alike", () => {
  const independent = exponential(1_000, 1)
  const runs = independent.map((_, at) => independent[Math.floor(at / 20) * 20]!)
  const width = (values: ReadonlyArray<number>) => {
    const [mean] = intervalsOf(values, ["mean"])
    return mean!.high - mean!.low
  }
  expect(width(runs)).toBeGreaterThan(1.5 * width(independent))
})

it("gives the value of the sample inside its interval, and the same for the same seed", () => {
  const values = exponential(500, 3)
  const once = intervalsOf(values, ["mean", 50, 95, 99])
  for (const { high, low, value } of once) {
    expect(value).toBeGreaterThanOrEqual(low)
    expect(value).toBeLessThanOrEqual(high)
  }
  expect(intervalsOf(values, ["mean", 50, 95, 99])).toEqual(once)
})

it("gives no interval where too few requests lie beyond a percentile", () => {
  const [mean, p95, p99] = intervalsOf(exponential(60, 1), ["mean", 95, 99])
  expect(mean!.low).not.toBeNaN()
  expect(p95!.low).not.toBeNaN()
  expect(p99!.low).toBeNaN()
  expect(intervalsOf([1, 2, 3], ["mean"])[0]).toEqual({ value: 2, low: Number.NaN, high: Number.NaN })
  expect(intervalsOf([], [50])[0]!.value).toBeNaN()
})

it("draws no more values for 100,000 requests than for 20,000", inLong, () => {
  const { below } = Random.prototype
  /** Values that are drawn: blocks of as many consecutive requests as the cube root of their number. */
  const drawn = (count: number): number => {
    let blocks = 0
    Random.prototype.below = function (limit) {
      blocks++
      return below.call(this, limit)
    }
    try {
      intervalsOf(exponential(count, 1), ["mean", 99])
    } finally {
      Random.prototype.below = below
    }
    return blocks * Math.ceil(Math.cbrt(count))
  }
  // The number of resamples falls as that of requests grows.
  expect(drawn(100_000) / drawn(20_000)).toBeLessThan(1.1)
})
