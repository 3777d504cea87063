import { describe, expect, it } from "@effect/vitest"
import { minAdvanceSeconds, segmentsOf } from "#engines/whisper/rules/Seek.ts"

const layout = { endOfText: 100, timestampBegin: 110, maxInitialTimestamp: 50 }
/** Seconds → timestamp token. */
const at = (seconds: number) => 110 + Math.round(seconds / 0.02)

describe("segmentsOf", () => {
  it("a lone timestamp at the end consumes the whole window", () => {
    const heard = segmentsOf([at(0), 1, 2, at(2), at(2), 3, at(4.5)], layout, 30)
    expect(heard.segments).toEqual([
      { start: 0, end: 2, tokens: [1, 2] },
      { start: 2, end: 4.5, tokens: [3] },
    ])
    expect(heard.consumedSeconds).toBe(30)
  })

  it("a pair at the end means that more follows: the next window starts there", () => {
    const heard = segmentsOf([at(0.4), 1, at(2), at(2), 3, at(28), at(28)], layout, 30)
    expect(heard.segments.map(({ start, end }) => [start, end])).toEqual([
      [0.4, 2],
      [2, 28],
    ])
    expect(heard.consumedSeconds).toBe(28)
  })

  it("a pair may leave a gap; the next window starts at its first half", () => {
    const heard = segmentsOf([at(0), 1, at(3), at(5)], layout, 30)
    expect(heard.consumedSeconds).toBe(3)
  })

  it("an unfinished segment behind the last pair is left for the next window", () => {
    const heard = segmentsOf([at(0), 1, at(20), at(20), 5, 6], layout, 30)
    expect(heard.segments).toEqual([{ start: 0, end: 20, tokens: [1] }])
    expect(heard.consumedSeconds).toBe(20)
  })

  it("keeps text behind a pair that lies in the padding", () => {
    const heard = segmentsOf([at(0), 1, at(6), at(6), 2], layout, 5)
    expect(heard.segments.map(({ tokens }) => tokens)).toEqual([[1], [2]])
    expect(heard.consumedSeconds).toBe(5)
  })

  it("text without a pair is one segment to the end of the audio", () => {
    expect(segmentsOf([at(0.5), 1, 2], layout, 12)).toEqual({
      segments: [{ start: 0.5, end: 12, tokens: [1, 2] }],
      consumedSeconds: 12,
    })
    expect(segmentsOf([1, 2], layout, 12).segments).toEqual([{ start: 0, end: 12, tokens: [1, 2] }])
  })

  it("nothing said consumes the window", () => {
    for (const tokens of [[], [at(0)], [at(1)]]) {
      expect(segmentsOf(tokens, layout, 7)).toEqual({ segments: [], consumedSeconds: 7 })
    }
  })

  it("times in the padding behind the audio are pulled back", () => {
    const heard = segmentsOf([at(0), 1, at(6), at(6), 2, at(9)], layout, 5)
    expect(heard.segments.map(({ start, end }) => [start, end])).toEqual([
      [0, 5],
      [5, 5],
    ])
  })

  it("tiny closed segments still move the window on", () => {
    expect(segmentsOf([at(0), 1, at(0.02), at(0.02)], layout, 30).consumedSeconds).toBe(minAdvanceSeconds)
    expect(segmentsOf([at(0), 1, at(0.02), at(0.02)], layout, 0.1).consumedSeconds).toBe(0.1)
  })
})
