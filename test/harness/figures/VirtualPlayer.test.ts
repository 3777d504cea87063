// The player on paper: which silences a listener hears.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Delivered, play } from "#harness/figures/VirtualPlayer.ts"

/** Chunks of some audio, each a time after the one before. */
const deliveries = fc
  .array(fc.record({ waitMs: fc.nat(400), chunkMs: fc.integer({ min: 1, max: 300 }) }), {
    minLength: 1,
    maxLength: 40,
  })
  .map((chunks) => {
    let atMs = 0
    let audioMs = 0
    return chunks.map(({ chunkMs, waitMs }): Delivered => {
      atMs += waitMs
      audioMs += chunkMs
      return { atMs, audioMs }
    })
  })

/** Plays sample by sample, a millisecond each, as a sound card would. */
const playedStepByStep = (list: ReadonlyArray<Delivered>) => {
  let silences = 0
  let starvedMs = 0
  let played = 0
  let isSilent = false
  const total = list.at(-1)!.audioMs
  for (let nowMs = list[0]!.atMs; played < total; nowMs++) {
    const there = list.filter(({ atMs }) => atMs <= nowMs).at(-1)?.audioMs ?? 0
    if (there > played) {
      played++
      isSilent = false
      continue
    }
    starvedMs++
    if (!isSilent) silences++
    isSilent = true
  }
  return { silences, starvedMs }
}

describe("a player without a buffer", () => {
  it("is silent as often and as long as a sound card that plays each millisecond", () => {
    fc.assert(
      fc.property(deliveries, (list) => {
        const { silences, starvedMs } = playedStepByStep(list)
        const playback = play(list)
        expect(playback.underruns).toBe(silences)
        expect(playback.starvedMs).toBeCloseTo(starvedMs, 6)
      }),
    )
  })

  it("hears no silence of a stream that is never late", () => {
    const list = Array.from({ length: 50 }, (_, at) => ({ atMs: at * 100, audioMs: (at + 1) * 100 }))
    expect(play(list)).toMatchObject({ underruns: 0, starvedMs: 0, audioMs: 5000 })
  })

  it("counts one gap for each late chunk", () => {
    const list = [
      { atMs: 0, audioMs: 100 },
      { atMs: 150, audioMs: 200 },
      { atMs: 250, audioMs: 300 },
      { atMs: 420, audioMs: 400 },
    ]
    expect(play(list)).toMatchObject({ underruns: 2, starvedMs: 120, leastAheadMs: -70 })
  })
})

it("a larger buffer never makes more silence", () => {
  fc.assert(
    fc.property(deliveries, fc.nat(500), fc.nat(500), (list, a, b) => {
      const [small, large] = a < b ? [a, b] : [b, a]
      expect(play(list, large).starvedMs).toBeLessThanOrEqual(play(list, small).starvedMs + 1e-6)
    }),
  )
})

it("a stream shorter than the buffer, and one without audio, have no gap", () => {
  expect(play([{ atMs: 0, audioMs: 50 }], 1_000)).toMatchObject({ underruns: 0, audioMs: 50 })
  expect(play([])).toMatchObject({ underruns: 0, starvedMs: 0, audioMs: 0 })
})
