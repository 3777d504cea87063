// Which words of a spoken answer were heard: whole words from its beginning, more of them with more audio, all with all of it.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { SpokenText } from "#domain/conversation/SpokenText.ts"

const word = fc.stringMatching(/^[a-z]{1,9}[.,]?$/)
const piece = fc.record({
  words: fc.array(word, { minLength: 1, maxLength: 8 }),
  samples: fc.integer({ min: 1, max: 50_000 }),
})

const spokenOf = (pieces: ReadonlyArray<{ words: ReadonlyArray<string>; samples: number }>): SpokenText => {
  const spoken = new SpokenText(0)
  for (const { samples, words } of pieces) {
    spoken.begin(`${words.join(" ")} `)
    spoken.add(samples)
  }
  return spoken
}

it("are words from the beginning, never fewer with more audio, and never a word of which less than half was played", () => {
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 6 }),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true })),
      (pieces, shares) => {
        const spoken = spokenOf(pieces)
        let before = ""
        for (const share of [...shares].sort((a, b) => a - b)) {
          const heard = spoken.heard(spoken.samples * share)
          expect(spoken.text.startsWith(heard)).toBe(true)
          expect(heard.startsWith(before)).toBe(true)
          // Cut between words.
          expect(heard === "" || /^\s|^$/.test(spoken.text.slice(heard.length)) || heard.endsWith(" ")).toBe(
            true,
          )
          before = heard
        }
        expect(spoken.heard(spoken.samples)).toBe(spoken.text)
        expect(spoken.heard(0)).toBe("")
      },
    ),
  )
})

it("places a word by its share of the characters of its piece", () => {
  const spoken = new SpokenText(0)
  spoken.begin("one two ")
  spoken.add(8_000)
  spoken.begin("three four")
  spoken.add(10_000)
  expect(spoken.heard(1_000)).toBe("")
  expect(spoken.heard(2_000)).toBe("one")
  expect(spoken.heard(8_000)).toBe("one two ")
  expect(spoken.heard(11_000)).toBe("one two three")
  expect(spoken.heard(15_000)).toBe("one two three")
  expect(spoken.heard(17_600)).toBe("one two three four")
})

it("counts a piece that is still being made by the audio that it has so far", () => {
  const spoken = new SpokenText(0)
  spoken.begin("one two")
  spoken.add(7_000)
  expect(spoken.heard(7_000, false)).toBe("one two")
  expect(spoken.heard(3_500, false)).toBe("one")
})
