// Duration of a call of any size, interpolated between the sizes that were measured.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"

/** A virtual clock. */
const clock = () => {
  let ms = 0
  return {
    nowMs: () => ms,
    pass: (elapsedMs: number) => {
      ms += elapsedMs
    },
  }
}

const filled = (largest: number, cost: (size: number) => number, nowMs = () => 0): CostCurve => {
  const curve = new CostCurve(largest, nowMs)
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
    const { nowMs, pass } = clock()
    const curve = filled(128, (size) => 10 + size, nowMs)
    pass(60_000)
    for (let call = 0; call < 20; call++) curve.observe(64, factor * 74)
    expect(curve.expectedMs(64) / (factor * 74)).toBeCloseTo(1, 1)
    expect(curve.expectedMs(8) / 18 / factor).toBeCloseTo(1, 1)
  }
})

it("a few disturbed calls change nothing", () => {
  const curve = filled(128, (size) => 10 + size)
  for (let call = 0; call < 30; call++) curve.observe(64, call % 3 === 0 ? 1_000 : 74)
  expect(curve.expectedMs(64)).toBeCloseTo(74)
})

it("what was kept is expected at once, and replaced by the next calls of other durations", () => {
  const curve = new CostCurve(128, () => 0)
  curve.take([
    [8, 20],
    [64, 80],
    [100, 1],
  ])
  expect(curve.kept()).toEqual([
    [8, 20],
    [64, 80],
  ])
  for (let call = 0; call < 8; call++) curve.observe(64, 40)
  expect(curve.expectedMs(64)).toBeCloseTo(40)
})

it("the calls of requests replace what was measured without them, at their own size only", () => {
  const curve = new CostCurve(16, () => 0)
  curve.take([
    [1, 0.5],
    [16, 9],
  ])
  for (let call = 0; call < 8; call++) curve.observe(1, call === 3 ? 1 : 1.2)
  expect(curve.quietMs(1)).toBe(1)
  expect(curve.quietMs(16)).toBe(9)
  // From then on other programs change nothing.
  for (let call = 0; call < 100; call++) curve.observe(1, 3)
  expect(curve.quietMs(1)).toBe(1)
})

it("what a size took lately is known apart from other sizes, for 10 s", () => {
  const { nowMs, pass } = clock()
  const curve = filled(16, (size) => (size < 16 ? 0.65 * size : 8), nowMs)
  for (let call = 0; call < 20; call++) curve.observe(1, 1.25)
  expect(curve.latelyMs(16)).toBeCloseTo((8 * 1.25) / 0.65)
  for (let call = 0; call < 3; call++) curve.observe(16, 11)
  for (let call = 0; call < 20; call++) curve.observe(1, 1.25)
  expect(curve.latelyMs(16)).toBeCloseTo(11)
  expect(curve.latelyMs(1)).toBeCloseTo(1.25)
  pass(10_001)
  expect(curve.latelyMs(16)).toBe(8)
})

it("a size that is first called on a busy machine is not believed to be slower than the others", () => {
  for (const busy of [2, 8, 50]) {
    const { nowMs, pass } = clock()
    const curve = new CostCurve(16, nowMs)
    for (const size of [1, 2, 4, 8]) curve.observe(size, 10 + size)
    for (let call = 0; call < 7; call++) curve.observe(8, busy * 18)
    curve.observe(16, busy * 26)
    expect(curve.expectedMs(16)).toBeCloseTo(busy * 26)
    pass(10_001)
    expect(curve.expectedMs(16)).toBeCloseTo(26)
    curve.observe(16, 24)
    expect(curve.expectedMs(16)).toBeCloseTo(24)
    expect(curve.expectedMs(1)).toBeCloseTo(11)
  }
})

/** A cost that grows with the size and has jumps, as kernels do. */
const costs = fc
  .record({
    perCall: fc.double({ min: 0.5, max: 30, noNaN: true }),
    perToken: fc.double({ min: 0.01, max: 3, noNaN: true }),
    jump: fc.constantFrom(8, 16, 32, 64),
  })
  .map(
    ({ jump, perCall, perToken }) =>
      (size: number) =>
        perCall + perToken * Math.ceil(size / jump) * jump,
  )

/** One call: its size, how many times too long it takes, and the milliseconds until it begins. */
const disturbedCalls = fc.array(
  fc.tuple(
    fc.integer({ min: 1, max: 512 }),
    fc.double({ min: 1, max: 60, noNaN: true }),
    fc.integer({ min: 1, max: 20_000 }),
  ),
  { minLength: 1, maxLength: 200 },
)

it("within 10 s of quiet the figures are those of quiet again, at all sizes, however long calls took before", () => {
  const tenMinutes = 600_000
  const quietCalls = fc.array(fc.tuple(fc.integer({ min: 1, max: 512 }), fc.integer({ min: 1, max: 500 })))
  fc.assert(
    fc.property(costs, disturbedCalls, quietCalls, (cost, disturbed, quiet) => {
      const { nowMs, pass } = clock()
      const curve = filled(512, cost, nowMs)
      const grid = [...curve.sizes]
      const before = grid.map((size) => curve.expectedMs(size))
      for (const [size, factor, waitMs] of disturbed) {
        if (nowMs() + waitMs > tenMinutes) break
        pass(waitMs)
        // Sizes at which durations are kept: between them they are read, and not those of a machine with jumps.
        const at = grid.findLast((each) => each <= size)!
        curve.observe(at, factor * cost(at))
      }
      const quietSinceMs = nowMs()
      for (const [size, waitMs] of quiet) {
        if (nowMs() + waitMs > quietSinceMs + 10_000) break
        pass(waitMs)
        const at = grid.findLast((each) => each <= size)!
        curve.observe(at, cost(at))
      }
      pass(Math.max(1, quietSinceMs + 10_001 - nowMs()))
      for (const [at, size] of grid.entries()) expect(curve.expectedMs(size)).toBeCloseTo(before[at]!, 6)
    }),
  )
})

it("four calls of a quiet machine are enough", () => {
  fc.assert(
    fc.property(costs, disturbedCalls, fc.integer({ min: 0, max: 9 }), (cost, disturbed, power) => {
      const { nowMs, pass } = clock()
      const curve = filled(512, cost, nowMs)
      for (const [size, factor, waitMs] of disturbed) {
        pass(Math.min(waitMs, 3_000))
        const at = curve.sizes.findLast((each) => each <= size)!
        curve.observe(at, factor * cost(at))
      }
      const size = 2 ** power
      for (let call = 0; call < 4; call++) curve.observe(size, cost(size))
      for (const each of curve.sizes) expect(curve.expectedMs(each)).toBeCloseTo(cost(each), 6)
    }),
  )
})

it("a machine that stays slower is believed in the end", () => {
  const { nowMs, pass } = clock()
  const curve = filled(64, (size) => 10 + size, nowMs)
  for (let minute = 0; minute < 100; minute++) {
    pass(60_000)
    for (const size of curve.sizes) curve.observe(size, 3 * (10 + size))
  }
  pass(60_000)
  for (const size of curve.sizes) expect(curve.expectedMs(size)).toBeCloseTo(3 * (10 + size))
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

it("no history of calls brings what is expected near 0 or to infinity", () => {
  const call = fc.record({
    size: fc.integer({ min: 1, max: 64 }),
    // A call that is a thousand times as fast as another one, of a machine that stands still now and then.
    ms: fc.integer({ min: -4, max: 9 }).map((power) => 2 ** power),
    passesMs: fc.constantFrom(0, 3_000, 11_000),
  })
  fc.assert(
    fc.property(fc.array(call, { minLength: 200, maxLength: 400, size: "max" }), (calls) => {
      const { nowMs, pass } = clock()
      const curve = new CostCurve(64, nowMs)
      for (const { ms, passesMs, size } of calls) {
        curve.observe(size, ms)
        pass(passesMs)
      }
      for (const size of [1, 3, 16, 64]) {
        // A call with one of 64 tokens takes a 64th of the least of all calls, which is 0.001 ms, or two thirds of that: sizes lie between powers
        // of two. The longest call, at the pace of the longest over the least, takes 2 ** 22 ms.
        expect(curve.quietMs(size)).toBeGreaterThan(0.5 * 2 ** -10)
        expect(curve.expectedMs(size)).toBeLessThan(1e9)
      }
    }),
    { numRuns: 50 },
  )
})
