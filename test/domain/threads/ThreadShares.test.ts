// Division of threads among busy models: each gets at least one, none is assigned twice, live work comes first.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Urgency } from "#domain/queues/FairQueue.ts"
import { shareThreads, type Worker } from "#domain/threads/ThreadShares.ts"

const worker = (id: string, urgency: Urgency, wants: number): Worker => ({ id, urgency, wants })
const shares = (workers: ReadonlyArray<Worker>, threads: number) =>
  Object.fromEntries(shareThreads(workers, threads))

const workers = fc
  .array(
    fc.record({
      urgency: fc.constantFrom<Urgency>("live", "interactive", "background"),
      wants: fc.integer({ min: 1, max: 64 }),
    }),
    { maxLength: 10 },
  )
  .map((list) => list.map((one, at): Worker => ({ id: `m${at}`, ...one })))
const threads = fc.integer({ min: 1, max: 128 })

describe("shares of the machine", () => {
  it("are never 0, never more than wanted, and together never more than there are", () =>
    fc.assert(
      fc.property(workers, threads, (list, total) => {
        const given = shareThreads(list, total)
        expect(given.size).toBe(list.length)
        for (const { id, wants } of list) {
          expect(given.get(id)).toBeGreaterThanOrEqual(1)
          expect(given.get(id)).toBeLessThanOrEqual(wants)
        }
        const sum = [...given.values()].reduce((a, b) => a + b, 0)
        expect(sum).toBeLessThanOrEqual(Math.max(total, list.length))
      }),
    ))

  it("leave no thread unused that a model wants", () =>
    fc.assert(
      fc.property(workers, threads, (list, total) => {
        const sum = [...shareThreads(list, total).values()].reduce((a, b) => a + b, 0)
        const wanted = list.reduce((a, { wants }) => a + wants, 0)
        expect(sum).toBeGreaterThanOrEqual(Math.min(total, wanted))
      }),
    ))

  it("give live work at least as much as streams, and these as much as background work", () =>
    fc.assert(
      fc.property(workers, threads, (list, total) => {
        const order = ["live", "interactive", "background"]
        const given = shareThreads(list, total)
        for (const a of list)
          for (const b of list)
            if (order.indexOf(a.urgency) < order.indexOf(b.urgency) && a.wants >= b.wants)
              expect(given.get(a.id)).toBeGreaterThanOrEqual(given.get(b.id) ?? 0)
      }),
    ))

  it.each<[string, ReadonlyArray<Worker>, number, Readonly<Record<string, number>>]>([
    ["alone: all", [worker("a", "background", 8)], 8, { a: 8 }],
    ["two on two cores", [worker("a", "live", 2), worker("b", "background", 2)], 2, { a: 1, b: 1 }],
    [
      "three on two cores",
      [worker("a", "live", 2), worker("b", "interactive", 2), worker("c", "background", 2)],
      2,
      { a: 1, b: 1, c: 1 },
    ],
    [
      "by kind",
      [worker("a", "live", 14), worker("b", "interactive", 14), worker("c", "background", 14)],
      14,
      { a: 8, b: 4, c: 2 },
    ],
    ["what one does not want", [worker("a", "live", 2), worker("b", "background", 16)], 16, { a: 2, b: 14 }],
    ["no model", [], 4, {}],
  ])("%s", (_name, list, total, expected) => expect(shares(list, total)).toEqual(expected))
})
