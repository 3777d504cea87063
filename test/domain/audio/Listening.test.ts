// What a live session transcribes, and when, over random histories: what must never be, and what must happen, whatever comes in whatever order.
import { describe, expect, it } from "vitest"
import * as listening from "#domain/audio/Listening.ts"
import { liveListening } from "../../support/audio/ListeningWorld.ts"

describe("a live session", () => {
  it("keeps its promises over 3,000 random histories", () => {
    const seen = liveListening(listening, 3_000)
    const rare = [
      "close",
      "close beside",
      "caption",
      "preview",
      "interrupt",
      "finish",
      "forget preview",
      "left",
    ]
    for (const what of rare) expect(seen.get(what), what).toBeGreaterThan(100)
  })
})
