// Spoken words found in the text as it was written: each word of plain text at its own place, whatever the parts in which they come;
// numbers, initials and abbreviations spoken as several words; marks without sound.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { type SpokenWord, WordTimes } from "#domain/audio/TimedWords.ts"

const timed = (spoken: string): ReadonlyArray<SpokenWord> =>
  spoken.split(" ").map((text, at) => ({ text, start: at * 100, end: at * 100 + 90 }))

const foundIn = (text: string, ...parts: ReadonlyArray<ReadonlyArray<SpokenWord>>) => {
  const times = new WordTimes(text)
  for (const part of parts) times.push(part)
  return times.found
}

const word = fc.stringMatching(/^[a-z]{1,9}$/)
const mark = fc.constantFrom("", ",", ".", "!", "…", ")")

it("finds every word of plain text, in whatever parts they come", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(word, mark), { minLength: 1, maxLength: 60 }),
      fc.array(fc.nat(60)),
      (words, cuts) => {
        const text = words.map(([letters, after]) => letters + after).join(" ")
        const spoken = timed(words.map(([letters]) => letters).join(" "))
        const at = [0, ...cuts.filter((cut) => cut < spoken.length).sort((a, b) => a - b), spoken.length]
        const parts = at.slice(1).map((end, index) => spoken.slice(at[index], end))
        const found = foundIn(text, ...parts)
        expect(found.map(({ from, to }) => text.slice(from, to))).toEqual(text.split(" "))
        expect(found.map(({ end, start }) => [start, end])).toEqual(
          spoken.map(({ end, start }) => [start, end]),
        )
      },
    ),
  )
})

it("gives ascending places in the text for any words", () => {
  fc.assert(
    fc.property(
      fc.string({ maxLength: 80 }),
      fc.array(fc.array(fc.string({ maxLength: 8 }))),
      (text, parts) => {
        let clock = 0
        const times = new WordTimes(text)
        for (const part of parts) times.push(part.map((word) => ({ text: word, start: clock, end: ++clock })))
        let before = 0
        let sounded = 0
        for (const { end, from, start, to } of times.found) {
          expect(from).toBeGreaterThanOrEqual(before)
          expect(to).toBeGreaterThan(from)
          expect(start).toBeGreaterThanOrEqual(sounded)
          expect(end).toBeGreaterThan(start)
          before = to
          sounded = end
        }
      },
    ),
  )
})

it.each([
  [
    "It costs $25, today.",
    "It costs twenty five dollars today",
    ["It@0", "costs@100", "$25,@200", "today.@500"],
  ],
  [
    "Dr. Smith of the U.S. said so",
    "Doctor Smith of the U S said so",
    ["Dr.@0", "Smith@100", "of@200", "the@300", "U.S.@400", "said@600", "so@700"],
  ],
  ["**Bold** — and 🙂 glad!", "Bold and glad", ["**Bold**@0", "and@100", "glad!@200"]],
  ["NASA’s well-known plan", "NASA's well known plan", ["NASA’s@0", "well-known@100", "plan@300"]],
  ["the cat the dog the end", "the cat the dog", ["the@0", "cat@100", "the@200", "dog@300"]],
])("finds %s in its speech", (text, spoken, expected) => {
  const found = foundIn(text, timed(spoken))
  expect(found.map(({ from, start, to }) => `${text.slice(from, to)}@${start}`)).toEqual(expected)
})

it("lengthens a word that goes on in the next part", () => {
  const found = foundIn(
    "room 25 now",
    timed("room twenty"),
    [{ text: "five", start: 300, end: 390 }],
    [
      { text: "", start: 390, end: 450 },
      { text: "now", start: 500, end: 590 },
    ],
  )
  expect(found.map(({ end, start }) => [start, end])).toEqual([
    [0, 90],
    [100, 450],
    [500, 590],
  ])
})
