// Duration of a call of any size, interpolated between the sizes that were measured.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"

const filled = (largest: number, cost: (size: number) => number): CostCurve => {
  const curve = new CostCurve(largest)
  for (const size of curve.sizes) curve.observe(size, cost(size))
  return curve
}

it("keeps powers of two and the largest size", () => {
  expect(new CostCurve(512).sizes).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
  expect(new CostCurve(20).sizes).toEqual([1, 2, 4, 8, 16, 20])
  expect(new CostCurve(1).sizes).toEqual([1])
})

it("what was measured once is what is expected, and between two sizes it is read between them", () => {
  const curve = filled(64, (size) => 10 + size)
  expect(curve.expectedMs(16)).toBeCloseTo(26)
  expect(curve.expectedMs(24)).toBeCloseTo(34)
})

it("above the largest measured size a call is expected in proportion, below the smallest at less", () => {
  const curve = new CostCurve(512)
  expect(curve.isMeasured(64)).toBe(false)
  curve.observe(64, 100)
  expect(curve.isMeasured(64)).toBe(true)
  expect(curve.expectedMs(256)).toBeCloseTo(400)
  expect(curve.expectedMs(16)).toBeCloseTo(50)
})

it("one disturbed measurement does not make a size dearer than a larger one", () => {
  const curve = filled(128, (size) => (size === 32 ? 1900 : 10 + size))
  expect(curve.expectedMs(32)).toBeCloseTo(74)
})

it("follows a machine that becomes slower or faster, also at sizes not called meanwhile", () => {
  for (const factor of [1 / 3, 3]) {
    const curve = filled(128, (size) => 10 + size)
    for (let call = 0; call < 20; call++) curve.observe(64, factor * 74)
    expect(curve.expectedMs(64) / (factor * 74)).toBeCloseTo(1, 1)
    const elsewhere = curve.expectedMs(8) / 18
    expect(Math.abs(Math.log(elsewhere / factor))).toBeLessThan(Math.abs(Math.log(factor)) * 0.6)
  }
})

it("whatever is observed, expectations are positive and grow with the size", () => {
  const calls = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 600 }), fc.double({ min: 0, max: 5000, noNaN: true })),
  )
  fc.assert(
    fc.property(calls, fc.integer({ min: 1, max: 600 }), (observed, largest) => {
      const curve = new CostCurve(largest)
      for (const [size, elapsedMs] of observed) curve.observe(Math.min(size, largest), elapsedMs)
      let before = 0
      for (let size = 1; size <= largest; size++) {
        const expected = curve.expectedMs(size)
        expect(expected).toBeGreaterThan(0)
        expect(expected).toBeGreaterThanOrEqual(before * (1 - 1e-9))
        before = expected
      }
    }),
    { numRuns: 50 },
  )
})
