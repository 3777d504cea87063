import fc from "fast-check"
import { expect, it } from "vitest"
import { type Listed, NumberedMap, UnorderedSet } from "#domain/queues/UnorderedSet.ts"

it("a list has the members that a Set has, whatever is added and removed", () => {
  const steps = fc.array(fc.record({ add: fc.boolean(), which: fc.nat(9) }))
  fc.assert(
    fc.property(steps, (taken) => {
      const members = Array.from({ length: 10 }, (): Listed => ({ listedAt: -1 }))
      const list = new UnorderedSet<Listed>()
      const model = new Set<Listed>()
      for (const { add, which } of taken) {
        const member = members[which] as Listed
        if (add) {
          list.add(member)
          model.add(member)
        } else {
          list.delete(member)
          model.delete(member)
        }
      }
      expect(new Set(list.values())).toEqual(model)
      expect(list.size).toBe(model.size)
      for (const member of members) expect(member.listedAt >= 0).toBe(model.has(member))
    }),
  )
})

it("a numbered map keeps what it was given under rising numbers, also beside a value that stays", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300 }), (steps) => {
      const map = new NumberedMap<string>()
      const copy = new NumberedMap<string>()
      const model = new Map<number, string>()
      let highest = 0
      const first = map.add("stays")
      copy.set(first, "stays")
      model.set(first, "stays")
      for (const add of steps) {
        if (add) {
          const number = map.add(`value ${highest}`)
          expect(number).toBeGreaterThan(highest)
          highest = number
          copy.set(number, `value ${number}`)
          model.set(number, map.get(number) as string)
        } else {
          const [oldest] = [...model.keys()].filter((number) => number !== first)
          if (oldest === undefined) continue
          expect(map.delete(oldest)).toBe(true)
          expect(map.delete(oldest)).toBe(false)
          copy.delete(oldest)
          model.delete(oldest)
          expect(map.get(oldest)).toBeUndefined()
        }
      }
      expect(map.size).toBe(model.size)
      expect(copy.size).toBe(model.size)
      for (const [number, value] of model) expect(map.get(number)).toBe(value)
      expect(new Set(map.values())).toEqual(new Set(model.values()))
    }),
  )
})
