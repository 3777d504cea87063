// How many live sessions an engine admits, from its measured load.
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { EngineLoad, speakingMs } from "#actors/live/EngineLoad.ts"
import { fullShare } from "#domain/audio/LivePace.ts"

describe("the load", () => {
  it("of a window is the busy time divided by the windows, without waiting times", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 40, maxLength: 80 }), (costs) => {
        // Calls one after the other with gaps, each reported twice at the same time: busy time is counted once.
        const load = new EngineLoad()
        let nowMs = 0
        for (const costMs of costs) {
          load.began(nowMs, "caption")
          load.began(nowMs, "caption")
          nowMs += costMs
          load.ended(nowMs, "caption")
          load.ended(nowMs, "caption")
          load.windowDone(nowMs, 1 + (costMs % 2))
          nowMs += 1_000
        }
        expect(load.windowMs).toBeGreaterThanOrEqual(Math.min(...costs))
        expect(load.windowMs).toBeLessThanOrEqual(Math.max(...costs))
      }),
    )
  })

  it("does not count a backlog as one window", () => {
    const load = measured(30)
    load.began(100, "caption")
    load.ended(5_000, "caption")
    load.windowDone(5_000, 40)
    expect(load.windowMs).toBe(30)
  })

  const measured = (windowMs: number): EngineLoad => {
    const load = new EngineLoad()
    load.began(0, "caption")
    load.ended(windowMs, "caption")
    load.windowDone(windowMs, 1)
    return load
  }

  it("admits speakers up to the full share, and the first in any case", () => {
    const load = measured(140)
    const speaker = () => ({ windowSeconds: 1, lastAudioAtMs: 1_000 })
    const admitted = Array.from({ length: 10 }, () => load.enter(speaker(), 1_000)).filter(Boolean).length
    expect(admitted).toBe(Math.floor(fullShare / 0.14))
    expect(load.share(1_000)).toBeLessThanOrEqual(fullShare)
    const hopeless = measured(5_000)
    expect(hopeless.enter(speaker(), 1_000)).toBe(true)
    expect(hopeless.enter(speaker(), 1_000)).toBe(false)
  })

  it("counts a long window as less, and a silent session as 0", () => {
    const load = measured(140)
    const quiet = { windowSeconds: 1, lastAudioAtMs: 0 }
    for (let i = 0; i < 6; i++) expect(load.enter({ ...quiet }, 0)).toBe(true)
    expect(load.enter({ ...quiet }, 0)).toBe(false)
    expect(load.enter({ windowSeconds: 10, lastAudioAtMs: 0 }, 0)).toBe(true)
    expect(load.share(speakingMs)).toBe(0)
    expect(load.enter({ windowSeconds: 1, lastAudioAtMs: speakingMs }, speakingMs)).toBe(true)
  })

  it("does not count a session in addition to the one that replaces it", () => {
    const load = measured(1_000)
    const first = { windowSeconds: 1, lastAudioAtMs: 0 }
    load.enter(first, 0)
    expect(load.enter({ ...first }, 0)).toBe(false)
    expect(load.enter({ ...first }, 0, { replaced: first })).toBe(true)
    expect(load.sessions).toBe(2)
  })

  it("releases the share of a session that ends", () => {
    const load = measured(1_000)
    const first = { windowSeconds: 1, lastAudioAtMs: 0 }
    load.enter(first, 0)
    expect(load.enter({ ...first }, 0)).toBe(false)
    load.leave(first)
    expect(load.sessions).toBe(0)
    expect(load.enter({ ...first }, 0)).toBe(true)
  })
})
