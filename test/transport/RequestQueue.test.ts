// Requests that arrive together: costly ones do not all run in one tick.
import { expect, it } from "vitest"
import { LoopTicks } from "#transport/LoopTicks.ts"
import { RequestQueue } from "#transport/RequestQueue.ts"

interface Request {
  readonly done: boolean
  readonly deferred: boolean
  readonly number: number
}

const request = (number: number): Request => ({ done: false, deferred: false, number })

it("runs only some of many costly requests in the tick that brings them, and all in their order", async () => {
  const ran: Array<number> = []
  const queue = new RequestQueue<Request>(new LoopTicks(), ({ number }) => {
    for (const untilMs = performance.now() + 3; performance.now() < untilMs; );
    ran.push(number)
  })
  const numbers = Array.from({ length: 12 }, (_, at) => at)
  for (const number of numbers) queue.admit(request(number))
  expect(ran.length).toBeLessThanOrEqual(2)
  const ends: Array<number> = []
  while (ran.length < numbers.length) {
    await new Promise((resolve) => setImmediate(resolve))
    ends.push(ran.length)
  }
  expect(ran).toEqual(numbers)
  // Two in each of the next ticks, at most.
  expect(ends.length).toBeGreaterThanOrEqual(5)
})
