// The rubric of the chat model's evaluation: 300 answers are judged, every rule is a pattern, and the parts that hold for every
// answer reject what they name.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { faultOf, rubric, rubricGroups } from "../eval/ChatRubric.ts"

const turns = rubric.prompts.flatMap(({ turns }) => turns)
const plain = {}
const said = (text: string, ended = true) => ({ ended, text })

describe("the rubric", () => {
  it("judges 300 answers, twenty of them to what people type first", () => {
    expect(turns.length).toBe(300)
    expect(rubric.prompts.filter(({ group }) => group === "first").length).toBe(20)
    expect(new Set(rubric.prompts.map(({ group }) => group))).toEqual(new Set(Object.keys(rubricGroups)))
  })

  it("has each prompt once, and a pattern for each", () => {
    const asked = rubric.prompts
      .filter(({ system }) => system === undefined)
      .flatMap(({ turns }) => turns.map(([message]) => message.toLowerCase()))
    expect(asked.filter((message, at) => asked.indexOf(message) !== at)).toEqual([])
    for (const [, want] of turns) {
      const rule = want.startsWith("/") ? want.slice(1) : rubric.rules[want]
      expect(rule).toBeDefined()
      expect(() => new RegExp(rule!)).not.toThrow()
    }
  })

  it("has three conversations of ten turns", () => {
    const everyday = rubric.prompts.filter(({ group }) => group === "everyday")
    expect(everyday.map(({ turns }) => turns.length)).toEqual([10, 10, 10])
  })

  it("accepts an answer that fits and rejects one that does not", () => {
    expect(faultOf(plain, "/\\b88\\b", said("77 plus 11 is 88."))).toBeUndefined()
    expect(faultOf(plain, "/\\b88\\b", said("77 plus 11 is 87."))).toBe("does not fit")
    expect(faultOf(plain, "refusal", said("I am a small model, and I cannot write code."))).toBeUndefined()
    expect(faultOf(plain, "refusal", said("I am a small model, and I like code."))).toBe("does not fit")
    expect(faultOf(plain, "story", said("Yes."))).toBe("does not fit")
  })

  it("rejects markup, answers without an end, repetition and a pirate unasked", () => {
    expect(faultOf(plain, "/came", said("Then a star named< came along."))).toBe("markup")
    expect(faultOf(plain, "/came", said("Then a star came along", true))).toBe("incomplete")
    expect(faultOf(plain, "/came", said("Then a star came along.", false))).toBe("does not end")
    expect(faultOf(plain, "/came", said("Then a star came. Then a star came."))).toBe("repeats itself")
    expect(faultOf(plain, "/hello", said("Arr! Hello!"))).toBe("pirate")
    expect(faultOf({ system: "You are a pirate." }, "pirate", said("Arr! Hello!"))).toBeUndefined()
  })

  it("wants short values in JSON", () => {
    const form = { schema: {} }
    expect(faultOf(form, "short", said('{"city": "Rome", "tags": ["old"]}'))).toBeUndefined()
    expect(faultOf(form, "short", said('{"city": ""}'))).toBe("empty value")
    expect(faultOf(form, "short", said(`{"city": "${"Rome ".repeat(20)}"}`))).toBe("long value")
    expect(faultOf(form, "short", said('{"city"'))).toBe("no JSON")
  })
})

it("the generator of the training text leaves these prompts out", () => {
  const generator = readFileSync(new URL("../train/words/corpus.py", import.meta.url), "utf8")
  expect(generator).toContain('"eval/chat.json"')
})
