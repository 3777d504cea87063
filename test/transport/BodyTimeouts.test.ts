import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type BodyTimeouts, judgeBody } from "#transport/BodyTimeouts.ts"
import { defaultSettings } from "#transport/TransportSettings.ts"

/** The result for a steady upload at each second. */
const verdicts = (bytesPerSecond: number, seconds: number): ReadonlyArray<string> =>
  Array.from({ length: seconds }, (_, i) => {
    const pace: BodyTimeouts = {
      ageMs: (i + 1) * 1_000,
      quietMs: bytesPerSecond > 0 ? 0 : (i + 1) * 1_000,
      pausedMs: 0,
      receivedBytes: Math.floor((i + 1) * bytesPerSecond),
    }
    return judgeBody(pace, defaultSettings).is
  })

describe("judgeBody", () => {
  it("lets every steady upload of 1 KB/s and more go on for ever", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_024, max: 10_000_000 }), (rate) =>
        verdicts(rate, 600).every((verdict) => verdict === "fine"),
      ),
    )
  })

  it("ends slower ones after 30 s and not before, one byte a second and silence included", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000 }), (rate) => {
        expect(verdicts(rate, 60).indexOf("stalled")).toBe(29)
      }),
    )
  })

  it("blames a pause on its handler only, and only at the end", () => {
    const pause = (pausedMs: number) =>
      judgeBody({ ageMs: 1_000_000, quietMs: 1_000_000, pausedMs, receivedBytes: 0 }, defaultSettings).is
    expect([pause(1), pause(59_999), pause(60_000)]).toEqual(["fine", "fine", "unread"])
  })
})
