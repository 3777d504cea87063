import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { TimedToken } from "#engines/transducer/decoding/Greedy.ts"
import { segmentsOf, spokenWords } from "#engines/transducer/decoding/SpokenWords.ts"
import { runs } from "../../../support/groups/Runs.ts"

const pieces = [
  "▁he",
  "llo",
  "▁",
  ",",
  "▁.",
  "▁World",
  "!",
  "<en-US>",
  "▁5",
  "<0xE4>",
  "<0xBD>",
  "<0xA0>",
  "你",
  "▁好",
  "'s",
  "▁«",
  "»",
  "<unk>",
  "\ufffd",
  "▁a▁b",
]
const at = (piece: string, frame: number, frames?: number): TimedToken => ({
  token: pieces.indexOf(piece),
  frame,
  logprob: -0.1,
  ...(frames === undefined ? {} : { frames }),
})
const textOf = (tokens: ReadonlyArray<TimedToken>) =>
  spokenWords(tokens, pieces)
    .words.map(({ text }) => text)
    .join("")

describe("words of tokens", () => {
  it("begin at a space, have the frames of their pieces, and take marks with them", () => {
    const tokens = [
      at("<en-US>", 0),
      at("▁he", 2),
      at("llo", 3),
      at("▁", 4),
      at(",", 9),
      at("▁World", 10),
      at("!", 20),
    ]
    const { language, words } = spokenWords(tokens, pieces)
    expect(language).toBe("en")
    expect(words.map(({ end, start, text }) => [text, start, end])).toEqual([
      [" hello,", 2, 4],
      [" World!", 10, 11],
    ])
  })

  it("end behind the duration of their last piece", () => {
    const { words } = spokenWords([at("▁he", 2, 1), at("llo", 3, 4), at(",", 9, 3)], pieces)
    expect(words.map(({ end, start }) => [start, end])).toEqual([[2, 7]])
  })

  it("characters of scripts without spaces are words of their own, also if they are spelled by bytes", () => {
    const tokens = [at("<0xE4>", 1), at("<0xBD>", 2), at("<0xA0>", 3), at("▁好", 4), at("<0xE4>", 5)]
    expect(spokenWords(tokens, pieces).words.map(({ text }) => text)).toEqual(["你", " 好"])
  })

  it("no control piece and no U+FFFD becomes text", () => {
    expect(textOf([at("<unk>", 0), at("<en-US>", 1), at("\ufffd", 2), at("▁he", 3), at("llo", 3)])).toBe(
      " hello",
    )
  })

  const anyTokens = fc.array(
    fc.record({
      token: fc.nat({ max: pieces.length - 1 }),
      logprob: fc.constant(-1),
      gap: fc.nat({ max: 20 }),
    }),
    { maxLength: 40 },
  )
  const timed = (
    list: ReadonlyArray<{ token: number; logprob: number; gap: number }>,
  ): ReadonlyArray<TimedToken> => {
    let frame = 0
    return list.map(({ gap, logprob, token }) => {
      frame += gap
      return { token, frame, logprob }
    })
  }

  it("the text of the first tokens begins the text of all", () => {
    fc.assert(
      fc.property(anyTokens, (list) => {
        const tokens = timed(list)
        let before = ""
        for (let count = 0; count <= tokens.length; count++) {
          const text = textOf(tokens.slice(0, count)).trim()
          expect(text.startsWith(before)).toBe(true)
          before = text
        }
      }),
      { numRuns: runs(500, 10_000) },
    )
  })

  it("segments hold all words in their order, and end where a sentence does", () => {
    fc.assert(
      fc.property(anyTokens, (list) => {
        const { words } = spokenWords(timed(list), pieces)
        const segments = segmentsOf(words, 0.08)
        expect(segments.flat()).toEqual(words)
        for (const segment of segments) {
          for (const word of segment.slice(0, -1)) expect(word.text).not.toMatch(/[.?!]$/u)
          if (segment.length > 1)
            expect((segment.at(-1)!.end - segment[0]!.start) * 0.08).toBeLessThanOrEqual(7.0001)
        }
      }),
      { numRuns: runs(300, 5_000) },
    )
  })
})
