// When a model goes on with one thread because other programs take its cores.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Disturbance } from "#engines/llama/steps/Disturbance.ts"

const clocked = () => {
  let ms = 0
  const disturbance = new Disturbance(() => ms)
  return {
    disturbance,
    pass: (elapsedMs: number) => {
      ms += elapsedMs
    },
    /** Calls on two threads for this time, which get this share of the processor time. */
    calls: (forMs: number, share: number, callMs = 50) => {
      for (let at = 0; at < forMs && !disturbance.now; at += callMs) {
        ms += callMs
        disturbance.called(2, callMs, 2 * callMs * share)
      }
    },
  }
}

it("threads that get their processor time go on, however long", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.8, max: 1.1, noNaN: true })), (shares) => {
      const { calls, disturbance } = clocked()
      for (const share of shares) calls(700, share)
      expect(disturbance.now).toBe(false)
    }),
  )
})

it("half a second of calls without it is enough, a single call is not", () => {
  const { calls, disturbance, pass } = clocked()
  calls(50, 0.1)
  expect(disturbance.now).toBe(false)
  calls(500, 0.5)
  expect(disturbance.now).toBe(true)
  pass(1_999)
  expect(disturbance.now).toBe(true)
  pass(1)
  expect(disturbance.now).toBe(false)
})

it("while it lasts, trials become rarer, and within 20 s of quiet several threads compute again", () => {
  const { calls, disturbance, pass } = clocked()
  let trialMs = 0
  const lastMs = 600_000
  for (let at = 0; at < lastMs; at += 100) {
    if (disturbance.now) pass(100)
    else {
      trialMs += 100
      calls(100, 0.5)
    }
  }
  expect(trialMs / lastMs).toBeLessThan(0.05)
  for (let at = 0; at < 20_000 && disturbance.now; at += 100) pass(100)
  calls(5_000, 1)
  expect(disturbance.now).toBe(false)
  // And the next disturbance is again left for two seconds only.
  calls(1_000, 0.5)
  pass(2_000)
  expect(disturbance.now).toBe(false)
})
