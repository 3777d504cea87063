import { randomBytes } from "node:crypto"
import fc from "fast-check"
import { expect, test } from "vitest"
import { freshIds, timedIds } from "#domain/access/FreshIds.ts"

test("fresh ids are 24 digits, each another one, over several pools", () => {
  const id = freshIds(randomBytes)
  const ids = Array.from({ length: 1000 }, id)
  expect(new Set(ids).size).toBe(1000)
  for (const one of ids) expect(one).toMatch(/^[0-9a-f]{24}$/)
})

test("ids that begin with the time sort by it, until the year 10889, and differ within a millisecond", () => {
  const latest = 2 ** 48 - 1
  const times = fc.array(fc.integer({ min: 0, max: latest }), { minLength: 1, maxLength: 50 })
  fc.assert(
    fc.property(times, (atMs) => {
      let nowMs = 0
      const id = timedIds(randomBytes, () => nowMs)
      const ids = atMs
        .toSorted((a, b) => a - b)
        .map((ms) => {
          nowMs = ms
          return [id(), id()] as const
        })
      for (const [first, second] of ids) {
        expect(first).toMatch(/^[0-9a-f]{28}$/)
        expect(first).not.toBe(second)
        expect(first.slice(0, 12)).toBe(second.slice(0, 12))
      }
      const heads = ids.map(([first]) => first.slice(0, 12))
      expect(heads).toEqual(heads.toSorted())
    }),
  )
})
