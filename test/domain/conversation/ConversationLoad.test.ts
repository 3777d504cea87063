// Which conversations are admitted, by what the engines were measured to take.
import fc from "fast-check"
import { expect, it } from "vitest"
import { activeMs, ConversationLoad, fullShare } from "#domain/conversation/ConversationLoad.ts"

const parts = { hears: "ears", writes: "mind", speaks: "voice" }
const measured = (ears: number, voice: number) => ({ ears: () => ears, voice: () => voice })

it("admits as many as fit, the first always", () => {
  const load = new ConversationLoad(measured(0.05, 0.4))
  expect(load.costOf(parts)).toBeCloseTo(0.25)
  expect([1, 2, 3, 4].map(() => load.enter(parts, 0) !== undefined)).toEqual([true, true, false, false])
  const slow = new ConversationLoad(measured(2, 2))
  expect([1, 2].map(() => slow.enter(parts, 0) !== undefined)).toEqual([true, false])
  const unmeasured = new ConversationLoad(measured(0, 0))
  for (let n = 0; n < 100; n++) expect(unmeasured.enter(parts, 0)).toBeDefined()
})

it("counts conversations that are not silent", () => {
  const load = new ConversationLoad(measured(0.5, 0))
  const first = load.enter(parts, 0)!
  expect(load.enter(parts, activeMs - 1)).toBeUndefined()
  load.answers(first, activeMs - 1)
  expect(load.enter(parts, activeMs)).toBeUndefined()
  expect(load.enter(parts, 2 * activeMs)).toBeDefined()
  load.leave(first)
  expect(load.size).toBe(1)
})

it("measures a text engine by its busy time, which answers at the same time share", () => {
  const load = new ConversationLoad(measured(0, 0))
  const place = load.enter(parts, 0)!
  const alone = load.writes(place, 0)
  alone(500)
  // 500 ms of every 5 s.
  expect(load.costOf(parts)).toBeCloseTo(0.1)
  const ends = [1, 2, 3, 4].map(() => load.writes(place, 1_000))
  for (const end of ends) end(3_000)
  for (const end of ends) end(9_000)
  // 2,000 ms for four, of which the first end is charged all and the others nothing.
  const expected = [2_000, 0, 0, 0].reduce((mean, ms) => mean + (ms - mean) / 8, 500) / 5_000
  expect(load.costOf(parts)).toBeCloseTo(expected)
  load.forget((id) => id === "mind")
  expect(load.costOf(parts)).toBe(0)
})

it("learns how long answers are and how often they come", () => {
  const load = new ConversationLoad(measured(0, 1))
  const place = load.enter(parts, 0)!
  expect(load.costOf(parts)).toBeCloseTo(0.5)
  for (let at = 0; at < 200; at++) {
    load.answers(place, at * 10_000)
    load.answered(place, at * 10_000 + 2_000, 1_000)
  }
  expect(load.costOf(parts)).toBeCloseTo(0.1, 2)
})

it("never exceeds its share, nor goes below 0, whatever happens", () => {
  const step = fc.record({
    what: fc.constantFrom("enter", "leave", "answers", "answered", "writes", "ends"),
    ms: fc.nat(20_000),
  })
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.double({ min: 0, max: 0.5, noNaN: true }),
      (steps, ears) => {
        const load = new ConversationLoad(measured(ears, ears))
        const places: Array<NonNullable<ReturnType<typeof load.enter>>> = []
        const ends: Array<(nowMs: number) => void> = []
        let nowMs = 0
        for (const { ms, what } of steps) {
          nowMs += ms
          const place = places[0]
          if (what === "enter") {
            const before = load.share(nowMs)
            const entered = load.enter(parts, nowMs)
            if (entered !== undefined) places.push(entered)
            if (entered !== undefined && before > 0)
              expect(load.share(nowMs)).toBeLessThanOrEqual(fullShare + 1e-9)
          } else if (place === undefined) continue
          else if (what === "leave") load.leave(places.shift()!)
          else if (what === "answers") load.answers(place, nowMs)
          else if (what === "answered") load.answered(place, nowMs, ms)
          else if (what === "writes") ends.push(load.writes(place, nowMs))
          else ends.shift()?.(nowMs)
          expect(load.share(nowMs)).toBeGreaterThanOrEqual(0)
          expect(load.size).toBe(places.length)
        }
      },
    ),
  )
})
