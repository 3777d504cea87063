// The map that knows its oldest entry, against an array of pairs; and that asking a full one costs no more than asking
// one that was never full.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { TtlCache } from "#domain/queues/TtlCache.ts"

type Step = { readonly do: "set" | "delete"; readonly key: string } | { readonly do: "drop" }
const key = fc.constantFrom(..."abcdefgh")
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("set" as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), key }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("drop" as const) }) },
)

describe("TtlCache", () => {
  it("answers as a list in order of setting does", () =>
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400, size: "max" }), (steps) => {
        const map = new TtlCache<{ readonly at: number }>()
        let list: Array<readonly [string, { readonly at: number }]> = []
        for (const [at, one] of steps.entries()) {
          if (one.do === "drop") {
            const oldest = map.oldest()
            expect(oldest?.[0]).toBe(list[0]?.[0])
            if (oldest !== undefined) map.delete(oldest[0])
            list = list.slice(1)
          } else {
            list = list.filter(([key]) => key !== one.key)
            if (one.do === "delete") map.delete(one.key)
            else {
              const value = { at }
              map.set(one.key, value)
              list.push([one.key, value])
            }
          }
          expect(map.size).toBe(list.length)
          expect(map.oldest()).toEqual(list[0])
          for (const [key, value] of list) expect(map.get(key)).toBe(value)
        }
      }),
      { numRuns: 300 },
    ))

  it("drops as fast at 100,000 entries as it fills", () => {
    const map = new TtlCache<object>()
    const entries = 100_000
    const timed = (from: number, full: boolean): number => {
      const startedMs = performance.now()
      for (let i = from; i < from + entries; i++) {
        map.set(`key-${i}`, {})
        if (full) map.delete(map.oldest()![0])
      }
      return performance.now() - startedMs
    }
    const filling = timed(0, false)
    // The quietest of three rounds: a map that walks over its holes takes a hundred times as long in each of them.
    const dropping = Math.min(...[1, 2, 3].map((round) => timed(round * entries, true)))
    expect(map.size).toBe(entries)
    expect(dropping / filling).toBeLessThan(20)
  })
})
