// When a silent process counts as hung, by its processor time.
import { describe, expect, it } from "vitest"
import { mostProcessorTime, Silence } from "#domain/process/Silence.ts"

const deadlineMs = 15_000
const longestMs = 600_000
const everyMs = 2_000

/** The first second at which a process whose last message came at 0 counts as hung, read every 2 s; undefined if it never does. */
const hungAt = (
  processorMs: (atMs: number) => number | undefined,
  { untilMs = 1_200_000, receivedMs = (_: number): number => 0 } = {},
): number | undefined => {
  const silence = new Silence(deadlineMs, longestMs)
  for (let nowMs = everyMs; nowMs <= untilMs; nowMs += everyMs) {
    const because = silence.hungBecause({
      nowMs,
      receivedMs: receivedMs(nowMs),
      processorMs: processorMs(nowMs),
    })
    if (because !== undefined) return nowMs / 1000
  }
  return undefined
}

describe("Silence", () => {
  it("without computing: hung after the deadline", () => {
    expect(hungAt(() => 5_000)).toBe(16)
    expect(hungAt(() => undefined)).toBe(16)
  })

  it("helper threads that use a thousandth of a core do not count as computing", () => {
    expect(hungAt((at) => at / 1000)).toBe(16)
  })

  it("a call that computes continues on a busy machine, and counts as hung a deadline after it stops", () => {
    // A tenth of a core for a minute: 6 s of work.
    expect(hungAt((at) => at / 10, { untilMs: 60_000 })).toBeUndefined()
    expect(hungAt((at) => Math.min(at, 60_000) / 10)).toBe(76)
  })

  it("a window of Whisper turbo in fp32 on one thread, 15.4 s of a core, is no hang on any share of it", () => {
    for (const share of [1, 0.5, 0.1, 0.05]) {
      const endMs = 15_400 / share
      expect(hungAt((at) => at * share, { untilMs: endMs })).toBeUndefined()
    }
  })

  it("an endless loop ends after its processor time, on one thread or several", () => {
    expect(hungAt((at) => at)).toBe((mostProcessorTime * deadlineMs) / 1000 + 4)
    expect(hungAt((at) => 2 * at)).toBe((mostProcessorTime * deadlineMs) / 2_000 + 4)
  })

  it("no silence is longer than a load may be", () => {
    expect(hungAt((at) => at / 20)).toBe(longestMs / 1000 + 2)
  })

  it("each answer begins a new silence", () => {
    expect(hungAt((at) => at, { receivedMs: (now) => now - (now % 100_000) })).toBeUndefined()
  })

  it("a reader that was stopped itself reads once more before it decides", () => {
    const silence = new Silence(deadlineMs, longestMs)
    const reading = (nowMs: number) => silence.hungBecause({ nowMs, receivedMs: 0, processorMs: 0 })
    expect(reading(2_000)).toBeUndefined()
    expect(reading(60_000)).toBeUndefined()
    expect(reading(62_000)).toBe("silent for 62000 ms")
  })
})
