// How many live sessions an engine admits, from its measured load.
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { EngineLoad, speakingMs } from "#actors/live/EngineLoad.ts"
import { fullShare } from "#domain/audio/LivePace.ts"

const newSpeaker = (windowSeconds: number, atMs: number, org = "a") => ({
  org,
  windowSeconds,
  beganAtMs: atMs,
  lastAudioAtMs: atMs,
})

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
          load.windowDone(nowMs, 1 + (costMs % 2), 1_000)
          nowMs += 1_000
        }
        expect(load.windowMs(nowMs)).toBeGreaterThanOrEqual(Math.min(...costs))
        expect(load.windowMs(nowMs)).toBeLessThanOrEqual(Math.max(...costs))
      }),
    )
  })

  it("does not count a backlog as one window", () => {
    const load = measured(30)
    load.began(100, "caption")
    load.ended(5_000, "caption")
    load.windowDone(5_000, 40, 1_000)
    expect(load.windowMs(5_000)).toBe(30)
  })

  const measured = (windowMs: number): EngineLoad => {
    const load = new EngineLoad()
    load.began(0, "caption")
    load.ended(windowMs, "caption")
    load.windowDone(windowMs, 1, 1_000)
    return load
  }

  it("admits speakers up to the full share, and the first in any case", () => {
    const load = measured(140)
    const speaker = () => newSpeaker(1, 1_000)
    const admitted = Array.from({ length: 10 }, () => load.enter(speaker(), 1_000)).filter(Boolean).length
    expect(admitted).toBe(Math.floor(fullShare / 0.14))
    expect(load.share(1_000)).toBeLessThanOrEqual(fullShare)
    const hopeless = measured(5_000)
    expect(hopeless.enter(speaker(), 1_000)).toBe(true)
    expect(hopeless.enter(speaker(), 1_000)).toBe(false)
  })

  it("admits speakers of a model that transcribes in chunks by what a second of audio takes, however long their windows", () => {
    // 200 ms for each 560 ms of audio.
    const load = new EngineLoad(undefined, { seconds: 0.56, aheadSeconds: 0, costMs: 200 })
    const speaker = (nowMs: number) => newSpeaker(2, nowMs)
    expect([load.enter(speaker(0), 0), load.enter(speaker(0), 0), load.enter(speaker(0), 0)]).toEqual([
      true,
      true,
      false,
    ])
    // Two chunks that share a call take 300 ms. Captions of several chunks count as so much more audio.
    let nowMs = 0
    for (let caption = 0; caption < 100; caption++) {
      load.began(nowMs, "caption")
      nowMs += 300 * (1 + (caption % 3))
      load.ended(nowMs, "caption")
      load.windowDone(nowMs, 1 + (caption % 4), 1_120 * (1 + (caption % 3)))
    }
    expect(load.cost(nowMs).captionMs).toBe(0)
    expect(load.cost(nowMs).fixedShare).toBeCloseTo(300 / 1_120, 2)
    expect(load.speakersThatFit(nowMs)).toBe(3)
    expect(load.paceSeconds(speaker(nowMs), nowMs)).toBe(2)
  })

  it("counts a long window as less, and a silent session as 0", () => {
    const load = measured(140)
    const quiet = newSpeaker(1, 0)
    for (let i = 0; i < 6; i++) expect(load.enter({ ...quiet }, 0)).toBe(true)
    expect(load.enter({ ...quiet }, 0)).toBe(false)
    expect(load.enter(newSpeaker(10, 0), 0)).toBe(true)
    expect(load.share(speakingMs)).toBe(0)
    expect(load.enter(newSpeaker(1, speakingMs), speakingMs)).toBe(true)
  })

  it("does not count a session in addition to the one that replaces it", () => {
    const load = measured(1_000)
    const first = newSpeaker(1, 0)
    load.enter(first, 0)
    expect(load.enter({ ...first }, 0)).toBe(false)
    expect(load.enter({ ...first }, 0, { replaced: first })).toBe(true)
    expect(load.sessions).toBe(2)
  })

  it("of an organization that only opens sessions leaves the others' shares free", () => {
    const load = measured(140)
    while (load.enter(newSpeaker(1, 0, "a"), 0));
    expect(load.sessions).toBe(6)
    // Half of 0.9, and what is between 0.9 and 1.
    let others = 0
    while (load.enter(newSpeaker(1, 0, "b"), 0)) others++
    expect(others).toBe(3)
    expect([load.sessionsOf("a"), load.sessionsOf("b"), load.sessionsOf("c")]).toEqual([6, 3, 0])
  })

  it("of an organization that fills the engine by speaking leaves a tenth to the others", () => {
    const load = measured(90)
    const spoken = () => ({ ...newSpeaker(1, 0, "a"), lastAudioAtMs: 1 })
    while (load.enter(spoken(), 1));
    expect(load.sessions).toBe(10)
    expect(load.enter(newSpeaker(1, 1, "b"), 1)).toBe(true)
    expect(load.enter(newSpeaker(1, 1, "b"), 1)).toBe(false)
  })

  it("releases the share of a session that ends", () => {
    const load = measured(1_000)
    const first = newSpeaker(1, 0)
    load.enter(first, 0)
    expect(load.enter({ ...first }, 0)).toBe(false)
    load.leave(first)
    expect(load.sessions).toBe(0)
    expect(load.enter({ ...first }, 0)).toBe(true)
  })
})
