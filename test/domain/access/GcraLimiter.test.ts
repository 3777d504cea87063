// Bounded counting of failures, against what it promises: bursts, waiting times, memory.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"

const options = { burst: 5, forgiveMs: 1_000, maxAddresses: 50 }

/** Attempts of a few addresses, all of which fail, at times that only go forward. */
const attempts = fc
  .array(fc.record({ address: fc.constantFrom("a", "b", "c"), afterMs: fc.nat({ max: 1_500 }) }), {
    size: "max",
    maxLength: 200,
  })
  .map((steps) => {
    let nowMs = 0
    return steps.map(({ address, afterMs }) => {
      nowMs += afterMs
      return { address, nowMs }
    })
  })

describe("failed attempts", () => {
  it("let through at most a burst and one more a second in any window, and each address for itself", () => {
    fc.assert(
      fc.property(attempts, (steps) => {
        const failures = new GcraLimiter(options)
        const heard = new Map<string, Array<number>>()
        for (const { address, nowMs } of steps) {
          if (failures.waitMs(address, nowMs) > 0) continue
          failures.failed(address, nowMs)
          heard.set(address, [...(heard.get(address) ?? []), nowMs])
        }
        for (const times of heard.values()) {
          for (const [i, from] of times.entries()) {
            for (const [j, to] of times.entries()) {
              if (j < i) continue
              expect(j - i + 1).toBeLessThanOrEqual(options.burst + (to - from) / options.forgiveMs)
            }
          }
        }
      }),
      { numRuns: 100 },
    )
  })

  it("say the truth about when to come back, to the millisecond", () => {
    fc.assert(
      fc.property(attempts, (steps) => {
        const failures = new GcraLimiter(options)
        for (const { address, nowMs } of steps) {
          const waitMs = failures.waitMs(address, nowMs)
          if (waitMs === 0) failures.failed(address, nowMs)
          else {
            expect(failures.waitMs(address, nowMs + waitMs)).toBe(0)
            expect(failures.waitMs(address, nowMs + waitMs - 1)).toBeGreaterThan(0)
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it("forgive everything in time, and never delay a caller that fails slowly", () => {
    const failures = new GcraLimiter(options)
    for (let i = 0; i < 100; i++) {
      expect(failures.waitMs("slow", i * 1_000)).toBe(0)
      failures.failed("slow", i * 1_000)
    }
    for (let i = 0; i < 5; i++) failures.failed("fast", 0)
    expect(failures.waitMs("fast", 0)).toBe(1_000)
    expect(failures.waitMs("fast", 5_000)).toBe(0)
  })

  it("remember a bounded number of addresses, and forget the one that failed the longest ago", () => {
    const failures = new GcraLimiter(options)
    for (let i = 0; i < 10_000; i++) {
      for (let n = 0; n < options.burst; n++) failures.failed(`address ${i}`, i)
      expect(failures.addresses).toBeLessThanOrEqual(options.maxAddresses)
    }
    expect(failures.waitMs("address 9999", 9_999)).toBeGreaterThan(0)
    expect(failures.waitMs("address 1", 9_999)).toBe(0)
    // Addresses whose failures are forgiven are removed as others fail.
    for (let i = 0; i < 60; i++) failures.failed(`later ${i}`, 100_000)
    expect(failures.addresses).toBeLessThanOrEqual(options.maxAddresses)
    expect(failures.waitMs("address 9999", 100_000)).toBe(0)
  })
})
