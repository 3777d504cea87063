// Callbacks at the end of a tick: in order, all of them, and only some where they take long.
import { expect, it } from "vitest"
import { LoopTicks } from "#transport/LoopTicks.ts"

const tick = () => new Promise<void>((resolve) => void setImmediate(resolve))

it("runs what takes no time in one tick, in order, and what is added meanwhile in the next", async () => {
  const ticks = new LoopTicks(() => 0)
  const ran: Array<string> = []
  ticks.afterwards(() => {
    ran.push("a")
    ticks.afterwards(() => ran.push("c"))
  })
  ticks.afterwards(() => ran.push("b"))
  await tick()
  expect(ran).toEqual(["a", "b"])
  await tick()
  expect(ran).toEqual(["a", "b", "c"])
})

it("divides what takes long among ticks, before what is added meanwhile", async () => {
  let nowMs = 0
  const ticks = new LoopTicks(() => nowMs)
  const ran: Array<number | string> = []
  for (let at = 0; at < 10; at++)
    ticks.afterwards(() => {
      if (at === 0) ticks.afterwards(() => ran.push("added"))
      ran.push(at)
      nowMs += 1
    })
  const before = ticks.current
  await tick()
  expect(ran).toEqual([0, 1, 2])
  expect(ticks.current).not.toBe(before)
  await tick()
  expect(ran).toEqual([0, 1, 2, 3, 4, 5])
  for (let more = 0; more < 3; more++) await tick()
  expect(ran).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "added"])
})

it("runs one in each tick where each takes longer than a tick may", async () => {
  let nowMs = 0
  const ticks = new LoopTicks(() => nowMs)
  const ran: Array<number> = []
  for (let at = 0; at < 3; at++)
    ticks.afterwards(() => {
      ran.push(at)
      nowMs += 100
    })
  await tick()
  expect(ran).toEqual([0])
  await tick()
  expect(ran).toEqual([0, 1])
})
