// Who speaks when in a conversation, over random histories: what must never be, and what must happen, whatever comes in whatever order.
import { describe, expect, it } from "vitest"
import * as turnTaking from "#domain/conversation/TurnTaking.ts"
import { liveHistories } from "../../support/conversation/ConversationWorld.ts"

describe("turn taking", () => {
  it("keeps its promises over 3,000 random histories", () => {
    const seen = liveHistories(turnTaking, 3_000)
    const rare = ["release", "flush", "keep played", "take silence", "did not begin", "fail", "refuse"]
    for (const what of rare) expect(seen.get(what), what).toBeGreaterThan(20)
  })
})
