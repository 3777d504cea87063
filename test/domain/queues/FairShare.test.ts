// Shares that are never taken back: bounds, and what a party finds that comes later.
import fc from "fast-check"
import { expect, it } from "vitest"
import { mayTake, type Part } from "#domain/queues/FairShare.ts"

const limits = { full: 12, fair: 14, first: 16 }
const parties = ["a", "b", "c", "d"] as const

const requests = fc.array(
  fc.record({ party: fc.constantFrom(...parties), isUsed: fc.boolean(), leaves: fc.boolean() }),
  { maxLength: 120 },
)

it("used parts alone never exceed the limits, and only the first of a party is above `fair`", () => {
  fc.assert(
    fc.property(requests, (all) => {
      const held: Array<Part> = []
      for (const { leaves, party } of all) {
        if (leaves) {
          held.shift()
          continue
        }
        const own = held.filter((part) => part.party === party).length
        if (!mayTake(held, { party, amount: 1 }, limits)) continue
        held.push({ party, amount: 1, isUsed: true })
        expect(held.length).toBeLessThanOrEqual(own === 0 ? limits.first : limits.fair)
        if (new Set(held.map((part) => part.party)).size === 1)
          expect(held.length).toBeLessThanOrEqual(limits.full)
      }
    }),
  )
})

it("a party that comes later has its equal part, as far as the others use nothing", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 500 }), (others, each) => {
      const held: Array<Part> = parties
        .slice(1, others + 1)
        .flatMap((party) => Array.from({ length: each }, () => ({ party, amount: 1, isUsed: false })))
      let own = 0
      while (mayTake(held, { party: "a", amount: 1 }, limits)) {
        held.push({ party: "a", amount: 1, isUsed: true })
        own++
      }
      expect(own).toBeGreaterThanOrEqual(Math.floor(limits.full / (others + 1)))
      expect(own).toBeLessThanOrEqual(limits.fair)
    }),
  )
})

it("as parts end, those who have less get them, until all have the same", () => {
  const held: Array<Part> = []
  const take = (party: string) => {
    if (!mayTake(held, { party, amount: 1 }, limits)) return false
    held.push({ party, amount: 1, isUsed: true })
    return true
  }
  while (take("a"));
  expect(held).toHaveLength(limits.full)
  // Both ask again and again, the first one always before.
  for (let ended = 0; ended < 40; ended++) {
    while (take("a"));
    while (take("b"));
    held.splice(
      held.findIndex(({ party }) => party === "a"),
      1,
    )
  }
  const count = (party: string) => held.filter((part) => part.party === party).length
  expect(count("b")).toBeGreaterThanOrEqual(limits.full / 2)
  expect(count("a") + count("b")).toBeLessThanOrEqual(limits.fair)
})
