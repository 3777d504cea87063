// The limiter against the definition: keep every admitted time, count those inside the window.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { type Admission, SlidingWindowLimiter } from "#domain/access/SlidingWindowLimiter.ts"

/** Reference implementation of `admit`, without a bound on memory. */
class Model {
  readonly #admitted = new Map<string, Array<number>>()
  #nowMs = Number.NEGATIVE_INFINITY
  readonly limit: number
  readonly windowMs: number

  constructor(limit: number, windowMs: number) {
    this.limit = limit
    this.windowMs = windowMs
  }

  admit(user: string, atMs: number): Admission {
    this.#nowMs = Math.max(atMs, this.#nowMs)
    const nowMs = this.#nowMs
    const times = this.#admitted.get(user) ?? []
    const inside = times.filter((time) => time > nowMs - this.windowMs)
    if (inside.length >= this.limit) {
      const retryAfterMs = inside[0]! + this.windowMs - nowMs
      return { admitted: false, remaining: 0, retryAfterMs, resetMs: retryAfterMs }
    }
    this.#admitted.set(user, [...times, nowMs])
    const resetMs = (inside[0] ?? nowMs) + this.windowMs - nowMs
    return { admitted: true, remaining: this.limit - inside.length - 1, retryAfterMs: 0, resetMs }
  }
}

/** Requests in order: which of a few users, and how long after the one before. */
const requests = fc.array(
  fc.record({
    user: fc.constantFrom("a", "b", "c"),
    afterMs: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 12 }) },
      { weight: 1, arbitrary: fc.integer({ min: 90, max: 110 }) },
      { weight: 1, arbitrary: fc.constantFrom(100, 200, 300, 1000) },
      { weight: 1, arbitrary: fc.integer({ min: -50, max: -1 }) },
    ),
  }),
  // Without a size, fast-check keeps arrays to about ten elements.
  { maxLength: 300, size: "max" },
)

describe("SlidingWindowLimiter", () => {
  it("answers as the definition does", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), requests, (limit, steps) => {
        const window = new SlidingWindowLimiter({ limit, windowMs: 100 })
        const model = new Model(limit, 100)
        let atMs = 0
        for (const { user, afterMs } of steps) {
          atMs += afterMs
          expect(window.admit(user, atMs)).toEqual(model.admit(user, atMs))
        }
      }),
      { numRuns: 300 },
    )
  })

  it("never admits more than the limit in any rolling window", () => {
    const gaps = fc.array(fc.nat({ max: 40 }), { minLength: 50, maxLength: 200, size: "max" })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), gaps, (limit, steps) => {
        const window = new SlidingWindowLimiter({ limit, windowMs: 100 })
        const admitted: Array<number> = []
        let atMs = 0
        for (const gap of steps) {
          atMs += gap
          if (window.admit("u", atMs).admitted) admitted.push(atMs)
        }
        return admitted.every(
          (start) => admitted.filter((t) => t >= start && t < start + 100).length <= limit,
        )
      }),
    )
  })

  it("names the moment at which a refused user is admitted again, to the millisecond", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), requests, (limit, steps) => {
        const window = new SlidingWindowLimiter({ limit, windowMs: 100 })
        const model = new Model(limit, 100)
        let atMs = 0
        for (const { user, afterMs } of steps) {
          atMs += Math.abs(afterMs)
          const { admitted, retryAfterMs } = window.admit(user, atMs)
          model.admit(user, atMs)
          if (admitted) continue
          // Refused requests are not counted, so they do not delay the next admission.
          if (retryAfterMs > 1) expect(window.admit(user, atMs + retryAfterMs - 1).admitted).toBe(false)
          expect(window.admit(user, atMs + retryAfterMs).admitted).toBe(true)
          model.admit(user, atMs + retryAfterMs)
          atMs += retryAfterMs
        }
      }),
    )
  })

  it("never refuses a steady client: a hundred in a minute, evenly or in one burst after another", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 20 }),
        fc.nat({ max: 60_000 }),
        (limit, bursts, startMs) => {
          const window = new SlidingWindowLimiter({ limit })
          for (let i = 0; i < limit * 3; i++) {
            const atMs = startMs + Math.ceil((i * 60_000) / limit)
            expect(window.admit("even", atMs).admitted).toBe(true)
          }
          for (let burst = 0; burst < bursts; burst++) {
            for (let i = 0; i < limit; i++) {
              expect(window.admit("burst", startMs + 240_000 + burst * 60_000).admitted).toBe(true)
            }
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it("admits at the moment it named, and not a millisecond before", () => {
    const window = new SlidingWindowLimiter({ limit: 100 })
    for (let i = 0; i < 100; i++) expect(window.admit("u", i * 10).remaining).toBe(99 - i)
    const { admitted, retryAfterMs } = window.admit("u", 1000)
    expect({ admitted, retryAfterMs }).toEqual({ admitted: false, retryAfterMs: 59_000 })
    expect(window.admit("u", 59_999).admitted).toBe(false)
    expect(window.admit("u", 60_000).admitted).toBe(true)
    expect(window.admit("u", 60_000).admitted).toBe(false)
  })

  it("forgets idle users within two windows, without a sweep", () => {
    const window = new SlidingWindowLimiter({ limit: 5, windowMs: 100 })
    for (let i = 0; i < 10_000; i++) window.admit(`user-${i}`, i % 50)
    expect(window.users).toBe(10_000)
    window.admit("last", 150)
    expect(window.users).toBe(10_001)
    window.admit("last", 250)
    expect(window.users).toBe(1)
  })

  it("refuses a user too many, and takes it when others are forgotten", () => {
    const window = new SlidingWindowLimiter({ limit: 5, windowMs: 100, maxUsers: 3 })
    for (const user of ["a", "b", "c"]) expect(window.admit(user, 0).admitted).toBe(true)
    const refused = window.admit("d", 10)
    expect(refused).toEqual({ admitted: false, remaining: 0, retryAfterMs: 90, resetMs: 90 })
    expect(window.users).toBe(3)
    // Known users are not touched by the cap.
    expect(window.admit("a", 20).remaining).toBe(3)
    window.admit("a", 110)
    expect(window.admit("d", 220).admitted).toBe(true)
  })

  it("never remembers more users than its cap", () => {
    const traffic = fc.array(fc.tuple(fc.nat({ max: 30 }), fc.nat({ max: 20 })), {
      maxLength: 300,
      size: "max",
    })
    fc.assert(
      fc.property(traffic, (steps) => {
        const window = new SlidingWindowLimiter({ limit: 3, windowMs: 100, maxUsers: 10 })
        const model = new Model(3, 100)
        let atMs = 0
        for (const [user, afterMs] of steps) {
          atMs += afterMs
          const answer = window.admit(String(user), atMs)
          expect(window.users).toBeLessThanOrEqual(10)
          // Failing closed: it may refuse more than the definition, never admit more.
          if (answer.admitted) expect(model.admit(String(user), atMs).admitted).toBe(true)
        }
      }),
    )
  })

  it("is off at a limit of 0", () => {
    const window = new SlidingWindowLimiter({ limit: 0 })
    for (let i = 0; i < 1000; i++) expect(window.admit("u", 0).admitted).toBe(true)
    expect(window.users).toBe(0)
  })
})
