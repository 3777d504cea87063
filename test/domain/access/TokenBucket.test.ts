import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { TokenBucket } from "#domain/access/TokenBucket.ts"

describe("TokenBucket", () => {
  it("never gives more than its burst and what came back meanwhile", () => {
    const spending = fc.record({ afterMs: fc.nat(2_000), cost: fc.double({ min: 0, max: 5, noNaN: true }) })
    fc.assert(
      fc.property(fc.array(spending, { maxLength: 100 }), (spendings) => {
        const bucket = new TokenBucket({ burst: 10, perSecond: 4 }, 0)
        let nowMs = 0
        let spent = 0
        for (const { afterMs, cost } of spendings) {
          nowMs += afterMs
          if (bucket.spend(cost, nowMs)) spent += cost
          expect(spent).toBeLessThanOrEqual(10 + (nowMs / 1_000) * 4 + 1e-6)
        }
      }),
    )
  })

  it("gives at its rate for ever, and its burst again after a rest", () => {
    const bucket = new TokenBucket({ burst: 3, perSecond: 2 }, 0)
    for (let i = 0; i < 3; i++) expect(bucket.spend(1, 0)).toBe(true)
    expect(bucket.spend(1, 0)).toBe(false)
    for (let nowMs = 500; nowMs < 20_000; nowMs += 500) expect(bucket.spend(1, nowMs)).toBe(true)
    expect(bucket.available(60_000)).toBe(3)
  })
})
