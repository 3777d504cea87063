// Works that share the turns of the event loop.
import { Effect } from "effect"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { betweenParts, inSlices, sliceMs } from "#http/InSlices.ts"

/** Moves by what is spent alone: where the machine stands still between two parts, they would be divided. */
let nowMs = 0
beforeEach(() => {
  vi.spyOn(performance, "now").mockImplementation(() => nowMs)
})
afterEach(() => {
  vi.restoreAllMocks()
})

const spend = (ms: number) =>
  Effect.sync(() => {
    nowMs += ms
  })

/** Turns of the event loop that begin while the effect runs. */
const turnsOf = async (work: Effect.Effect<unknown>): Promise<number> => {
  let turns = 0
  let next = setImmediate(function count() {
    turns++
    next = setImmediate(count)
  })
  await Effect.runPromise(work)
  clearImmediate(next)
  return turns
}

it("divides short parts that come together among turns, and leaves a few in the same one", async () => {
  const parts = (count: number, ms: number) =>
    Effect.forEach(Array.from({ length: count }), () => Effect.andThen(betweenParts, spend(ms)))
  // More than one part in a turn at most takes it over its time.
  expect(await turnsOf(parts(10, 5))).toBeGreaterThanOrEqual(9)
  await new Promise((resolve) => setImmediate(resolve))
  expect(await turnsOf(parts(20, 0))).toBeLessThanOrEqual(1)
})

it("counts the time of all works of a turn together", async () => {
  const work = Effect.andThen(betweenParts, spend(5))
  const all = Effect.all([work, work, work, work], { concurrency: "unbounded" })
  expect(await turnsOf(all)).toBeGreaterThanOrEqual(3)
})

it("runs a slice of each work in turn", async () => {
  const order: Array<string> = []
  const work = (name: string) => {
    let slices = 0
    return inSlices((isOver) => {
      while (!isOver()) nowMs += 0.1
      order.push(name)
      return ++slices === 3 ? true : undefined
    })
  }
  await Effect.runPromise(Effect.all([work("a"), work("b")], { concurrency: "unbounded" }))
  expect(order).toEqual(["a", "b", "a", "b", "a", "b"])
  expect(sliceMs).toBeLessThan(10)
})
