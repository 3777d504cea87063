// The limit of log lines: never more than allowed in any second, and no line uncounted.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { LogRate } from "#domain/process/LogRate.ts"

describe("LogRate", () => {
  it("writes the first line of a second and counts the others in the next one", () => {
    const rate = new LogRate()
    expect(rate.admit("a", 0)).toBe(0)
    expect(rate.admit("a", 1)).toBeUndefined()
    expect(rate.admit("b", 1)).toBe(0)
    expect(rate.admit("a", 999)).toBeUndefined()
    expect(rate.admit("a", 1_000)).toBe(2)
    expect(rate.admit("a", 2_000)).toBe(0)
  })

  it("begins anew when the clock is set back", () => {
    const rate = new LogRate()
    rate.admit("a", 1_000_000)
    rate.admit("a", 1_000_001)
    expect(rate.admit("a", 5)).toBe(1)
  })

  it("has at most one line in any second, and counts every other one", () => {
    const times = fc.array(fc.tuple(fc.constantFrom("a", "b"), fc.nat(400)), { maxLength: 400 })
    fc.assert(
      fc.property(times, (steps) => {
        const rate = new LogRate()
        const written = new Map<string, Array<number>>()
        const seen = new Map<string, number>()
        const told = new Map<string, number>()
        const open = new Map<string, number>()
        let nowMs = 0
        for (const [kind, stepMs] of steps) {
          nowMs += stepMs
          seen.set(kind, (seen.get(kind) ?? 0) + 1)
          const suppressed = rate.admit(kind, nowMs)
          if (suppressed === undefined) open.set(kind, (open.get(kind) ?? 0) + 1)
          else {
            written.set(kind, [...(written.get(kind) ?? []), nowMs])
            expect(suppressed).toBe(open.get(kind) ?? 0)
            open.set(kind, 0)
            told.set(kind, (told.get(kind) ?? 0) + 1 + suppressed)
          }
        }
        for (const [kind, at] of written) {
          for (let i = 1; i < at.length; i++) expect(at[i]! - at[i - 1]!).toBeGreaterThanOrEqual(1_000)
          expect((told.get(kind) ?? 0) + (open.get(kind) ?? 0)).toBe(seen.get(kind))
        }
      }),
    )
  })

  it("remembers a bounded number of kinds, and bounds the lines of the others together", () => {
    const rate = new LogRate()
    let written = 0
    for (let n = 0; n < 20_000; n++) if (rate.admit(`kind ${n}`, n / 1_000) !== undefined) written++
    expect(rate.kinds).toBeLessThanOrEqual(1_025)
    expect(written).toBeLessThanOrEqual(1_025)
  })

  it("removes kinds without suppressed lines when the table is full", () => {
    const rate = new LogRate()
    for (let n = 0; n < 1_024; n++) rate.admit(`kind ${n}`, 0)
    rate.admit("kind 0", 1)
    expect(rate.admit("late", 1_000)).toBe(0)
    expect(rate.admit("kind 0", 1_000)).toBe(1)
    expect(rate.kinds).toBeLessThan(10)
  })
})
