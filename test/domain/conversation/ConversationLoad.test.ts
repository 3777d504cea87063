// Which conversations are admitted, by what the engines were measured to take.
import fc from "fast-check"
import { expect, it } from "vitest"
import {
  activeMs,
  ConversationLoad,
  fullShare,
  idlePart,
  newMs,
  shares,
} from "#domain/conversation/ConversationLoad.ts"

const parts = { hears: "ears", writes: "mind", speaks: "voice" }
const measured = (ears: number, voice: number) => ({ ears: () => ears, voice: () => voice })

it("admits as many as fit, the first always", () => {
  const load = new ConversationLoad(measured(0.05, 0.4))
  expect(load.costOf(parts, 0)).toBeCloseTo(0.25)
  expect([1, 2, 3, 4].map(() => load.enter(parts, "a", 0) !== undefined)).toEqual([true, true, false, false])
  const slow = new ConversationLoad(measured(2, 2))
  expect([1, 2].map(() => slow.enter(parts, "a", 0) !== undefined)).toEqual([true, false])
  const unmeasured = new ConversationLoad(measured(0, 0))
  for (let n = 0; n < 100; n++) expect(unmeasured.enter(parts, "a", 0)).toBeDefined()
})

it("counts conversations in which something was said lately, and new ones; idle ones a little", () => {
  const load = new ConversationLoad(measured(0.5, 0))
  const first = load.enter(parts, "a", 0)!
  expect(load.enter(parts, "a", newMs - 1)).toBeUndefined()
  expect(load.share(newMs)).toBeCloseTo(0.5 * idlePart)
  expect(load.enter(parts, "a", newMs)).toBeDefined()
  load.answers(first, newMs)
  expect(load.enter(parts, "a", newMs)).toBeUndefined()
  expect(load.share(2 * newMs)).toBeCloseTo(0.5 * (1 + idlePart))
  expect(load.enter(parts, "a", newMs + activeMs - 1)).toBeUndefined()
  // None goes on any more: one is always admitted.
  expect(load.enter(parts, "a", newMs + activeMs)).toBeDefined()
  load.leave(first)
  expect(load.size).toBe(2)
})

const fill = (load: ConversationLoad, org: string, nowMs: number) => {
  const entered: Array<NonNullable<ReturnType<typeof load.enter>>> = []
  while (entered.length < 1_000) {
    const place = load.enter(parts, org, nowMs)
    if (place === undefined) break
    entered.push(place)
  }
  return entered
}

it("lets another organization in where one has only opened conversations", () => {
  const load = new ConversationLoad(measured(0.0375, 0))
  expect(fill(load, "a", 0)).toHaveLength(16)
  // An equal share, though the first one's are new and may speak at once.
  expect(fill(load, "b", 0)).toHaveLength(8)
  // Idle ones, twenty for one that goes on.
  const others = new ConversationLoad(measured(0.0375, 0))
  for (let atMs = 0; atMs < 40 * newMs; atMs += newMs) fill(others, "a", atMs)
  expect(others.size).toBeGreaterThan(200)
  expect(others.size).toBeLessThanOrEqual(17 / idlePart)
  const places = fill(others, "b", 40 * newMs)
  expect(places.length).toBeGreaterThanOrEqual(8)
})

it("keeps a reserve for others where one organization speaks in all of its conversations", () => {
  const load = new ConversationLoad(measured(0.0375, 0))
  const first = fill(load, "a", 0)
  for (const place of first) load.answers(place, 1)
  const second = fill(load, "b", 1)
  // Up to 0.7, and each further organization one up to 0.8.
  expect(second).toHaveLength(2)
  expect(["c", "d", "e", "f"].map((org) => load.enter(parts, org, 1) !== undefined)).toEqual([
    true,
    true,
    true,
    false,
  ])
  // What ends of the first goes to those that have less, not to itself.
  for (const place of first.splice(0, 4)) load.leave(place)
  expect(load.enter(parts, "a", 1)).toBeUndefined()
  expect(fill(load, "b", 1).length).toBeGreaterThan(0)
})

it("is fair to many organizations with one conversation each", () => {
  const load = new ConversationLoad(measured(0.0375, 0))
  const orgs = Array.from({ length: 40 }, (_, n) => `org${n}`)
  expect(orgs.filter((org) => load.enter(parts, org, 0) !== undefined)).toHaveLength(
    Math.floor(shares.first / 0.0375 + 1e-9),
  )
})

it("measures a text engine by its busy time, which answers at the same time share", () => {
  const load = new ConversationLoad(measured(0, 0))
  const place = load.enter(parts, "a", 0)!
  const alone = load.writes(place, 0)
  alone(500)
  // 500 ms of every 5 s.
  expect(load.costOf(parts, 500)).toBeCloseTo(0.1)
  const ends = [1, 2, 3, 4].map(() => load.writes(place, 1_000))
  for (const end of ends) end(3_000)
  for (const end of ends) end(9_000)
  // 2,000 ms for four, of which the first end is charged all and the others nothing.
  const expected = [2_000, 0, 0, 0].reduce((mean, ms) => mean + (ms - mean) / 8, 500) / 5_000
  expect(load.costOf(parts, 9_000)).toBeCloseTo(expected)
  load.forget((id) => id === "mind")
  expect(load.costOf(parts, 9_000)).toBe(0)
})

it("forgets a bad minute while nothing is said: as many fit again as on a fresh node", () => {
  const load = new ConversationLoad(measured(0, 0))
  const place = load.enter(parts, "a", 0)!
  for (let at = 0; at < 2; at++) load.writes(place, at * 10_000)(at * 10_000 + 9_000)
  load.leave(place)
  const afterMs = 20_000
  expect(fill(load, "a", afterMs)).toHaveLength(1)
  const forgotten = new ConversationLoad(measured(0, 0))
  const slow = forgotten.enter(parts, "a", 0)!
  forgotten.writes(slow, 0)(9_000)
  forgotten.leave(slow)
  expect(fill(forgotten, "a", 9_000 + 120_000).length).toBeGreaterThan(50)
})

it("learns how long answers are and how often they come", () => {
  const load = new ConversationLoad(measured(0, 1))
  const place = load.enter(parts, "a", 0)!
  expect(load.costOf(parts, 0)).toBeCloseTo(0.5)
  for (let at = 0; at < 200; at++) {
    load.answers(place, at * 10_000)
    load.answered(place, at * 10_000 + 2_000, 1_000)
  }
  expect(load.costOf(parts, 2_000_000)).toBeCloseTo(0.1, 2)
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
            const entered = load.enter(parts, "a", nowMs)
            if (entered !== undefined) places.push(entered)
            // The only one beside idle ones is always admitted.
            const ofIdle = idlePart * places.length * load.costOf(parts, nowMs)
            if (entered !== undefined && before > ofIdle + 1e-9)
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

it("asks once for what conversations with the same parts take, however many are open", () => {
  let asked = 0
  const load = new ConversationLoad({ ears: () => ++asked * 0, voice: () => 0 })
  for (let n = 0; n < 100; n++) {
    asked = 0
    expect(load.enter(parts, "a", 0)).toBeDefined()
    expect(asked).toBe(1)
  }
})
