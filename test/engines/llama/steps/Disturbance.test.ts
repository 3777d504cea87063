// When a model goes on with fewer threads because other programs take its cores.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Disturbance } from "#engines/llama/steps/Disturbance.ts"

/** A model of so many threads. */
const clocked = (wanted = 2) => {
  let ms = 0
  const disturbance = new Disturbance(() => ms)
  const isReduced = () => disturbance.threads(wanted) < wanted
  return {
    isReduced,
    threads: () => disturbance.threads(wanted),
    pass: (elapsedMs: number) => {
      ms += elapsedMs
    },
    /** Calls on all threads for this time, which get this share of the processor time. */
    calls: (forMs: number, share: number, callMs = 50) => {
      for (let at = 0; at < forMs && !isReduced(); at += callMs) {
        ms += callMs
        disturbance.called(wanted, callMs, wanted * callMs * share)
      }
    },
    /** Calls for this time on as many threads as are fastest, each of which has a core while there are enough. */
    callsOnCores: (forMs: number, cores: number, callMs = 50) => {
      for (let at = 0; at < forMs; at += callMs) {
        ms += callMs
        const threads = disturbance.threads(wanted)
        if (threads > 1) disturbance.called(threads, callMs, callMs * Math.min(threads, cores))
      }
    },
  }
}

it("threads that get their processor time go on, however long", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.8, max: 1.1, noNaN: true })), (shares) => {
      const { calls, isReduced } = clocked()
      for (const share of shares) calls(700, share)
      expect(isReduced()).toBe(false)
    }),
  )
})

it("half a second of calls without it is enough, a single call is not", () => {
  const { calls, isReduced, pass } = clocked()
  calls(50, 0.1)
  expect(isReduced()).toBe(false)
  calls(500, 0.5)
  expect(isReduced()).toBe(true)
  pass(999)
  expect(isReduced()).toBe(true)
  pass(1)
  expect(isReduced()).toBe(false)
})

it("while it lasts, trials become rarer, and within 5 s of quiet several threads compute again", () => {
  const { calls, isReduced, pass } = clocked()
  let trialMs = 0
  const lastMs = 600_000
  for (let at = 0; at < lastMs; at += 100) {
    if (isReduced()) pass(100)
    else {
      trialMs += 150
      calls(150, 0.5)
    }
  }
  expect(trialMs / lastMs).toBeLessThan(0.05)
  for (let at = 0; at < 5_000 && isReduced(); at += 100) pass(100)
  calls(5_000, 1)
  expect(isReduced()).toBe(false)
  // And the next disturbance is again left for a second only.
  calls(1_000, 0.5)
  expect(isReduced()).toBe(true)
  pass(1_000)
  expect(isReduced()).toBe(false)
})

it("other programs that come and go every 5 s cost a second of all threads each time they go", () => {
  const { callsOnCores, threads } = clocked()
  let severalMs = 0
  for (let at = 0; at < 300_000; at += 50) {
    const quiet = Math.floor(at / 5_000) % 2 === 1
    callsOnCores(50, quiet ? 2 : 1)
    if (quiet && threads() === 2) severalMs += 50
  }
  expect(severalMs / 150_000).toBeGreaterThan(0.5)
})

it("on many cores, as many threads go on as get one of their own, and all of them after the disturbance", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 64 }), fc.nat(), (wanted, quarters) => {
      const { callsOnCores, threads } = clocked(wanted)
      const cores = (quarters % (4 * wanted + 1)) / 4
      callsOnCores(1_000, cores)
      expect(threads()).toBe(cores / wanted >= 0.8 ? wanted : Math.max(1, Math.floor(cores)))
      callsOnCores(20_000, wanted)
      expect(threads()).toBe(wanted)
    }),
  )
})
