// What is sent, kept and charged of an answer, over random histories: what must never be, and what must happen, whatever comes in whatever
// order.
import { describe, expect, it } from "vitest"
import * as answerGiving from "#domain/conversation/AnswerGiving.ts"
import { liveAnswers } from "../../support/conversation/AnswerWorld.ts"

describe("an answer", () => {
  it("keeps its promises over 3,000 random histories", () => {
    const seen = liveAnswers(answerGiving, 3_000)
    const rare = [
      "hurry",
      "discard",
      "cancel",
      "voice failed",
      "failed",
      "await",
      "due",
      "released",
      "truncated",
    ]
    for (const what of rare) expect(seen.get(what), what).toBeGreaterThan(100)
  })
})
