import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { RowCache } from "#store/accounts/RowCache.ts"

it("gives back what is fresh, never what is stale, and never grows past its capacity", () => {
  const step = fc.record({
    key: fc.constantFrom("a", "b", "c", "d", "e"),
    set: fc.boolean(),
    remove: fc.boolean(),
    afterMs: fc.nat({ max: 8 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), (steps) => {
      const cache = new RowCache<number>({ capacity: 3, lifeMs: 20 })
      const written = new Map<string, { value: number; atMs: number }>()
      let nowMs = 0
      steps.forEach(({ key, set, remove, afterMs }, index) => {
        nowMs += afterMs
        const known = written.get(key)
        const got = cache.get(key, nowMs)
        // It may drop entries, but it may not invent them or keep them too long.
        if (got !== undefined) expect(known).toEqual({ value: got, atMs: expect.any(Number) })
        if (known !== undefined && nowMs >= known.atMs + 20) expect(got).toBeUndefined()
        if (set) {
          cache.set(key, index, nowMs)
          written.set(key, { value: index, atMs: nowMs })
          expect(cache.get(key, nowMs)).toBe(index)
        } else if (remove) {
          cache.delete(key)
          written.delete(key)
        }
        expect(cache.size).toBeLessThanOrEqual(3)
      })
    }),
  )
})

it("drops the entry that would have expired first", () => {
  const cache = new RowCache<string>({ capacity: 2, lifeMs: 100 })
  cache.set("old", "o", 0)
  cache.set("young", "y", 1)
  cache.set("old", "again", 2)
  cache.set("new", "n", 3)
  expect([cache.get("young", 3), cache.get("old", 3), cache.get("new", 3)]).toEqual([undefined, "again", "n"])
})
