// Where sentences end, where they don't, and that none of the text is lost between them.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { sentences } from "#engines/shared/text/Sentences.ts"

const split = (text: string): ReadonlyArray<string> => [...sentences(text)]

describe("sentences", () => {
  it("ends at marks, not at abbreviations, initials and numbers", () => {
    expect(split("Dr. Smith paid 3.50. He left! Why? “No.” They went.")).toEqual([
      "Dr. Smith paid 3.50.",
      "He left!",
      "Why?",
      "“No.”",
      "They went.",
    ])
    expect(split("At 5 p.m. we ate. At 6 p.m. The end. It was J. Smith, No. 5.")).toEqual([
      "At 5 p.m. we ate.",
      "At 6 p.m.",
      "The end.",
      "It was J. Smith, No. 5.",
    ])
    expect(split("The U.S. economy. In the U.S. The end.")).toEqual([
      "The U.S. economy.",
      "In the U.S.",
      "The end.",
    ])
  })

  it("closes paragraphs and list items", () => {
    expect(split("Title\n\nText\ngoes on.\n- one\n- two\n1. First\n2. Second")).toEqual([
      "Title.",
      "Text goes on.",
      "one.",
      "two.",
      "1, First.",
      "2, Second",
    ])
  })

  it("bounds a sentence that never ends", () => {
    const words = "word ".repeat(1000).trim()
    for (const part of split(words)) expect(part.length).toBeLessThanOrEqual(400)
    expect(split(words).join(" ")).toBe(words)
    expect(split("字".repeat(4096)).join("")).toBe("字".repeat(4096))
  })

  it("loses no letter and no digit", () => {
    const kept = (text: string): string => text.replace(/[^\p{L}\p{N}]/gu, "")
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."aB1 .!?…,\n-*;”)éЖ字"), maxLength: 1200 }),
        (text) => {
          expect(kept(split(text).join(" "))).toBe(kept(text))
        },
      ),
    )
  })

  it("gives the first sentence of a long text without reading the rest", () => {
    const text = `Hello there. ${"More words follow here. ".repeat(5000)}`
    expect(sentences(text).next().value).toBe("Hello there.")
  })
})
