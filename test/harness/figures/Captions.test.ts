// Lag and flicker of captions.
import { expect, it } from "vitest"
import { Captions } from "#harness/figures/Captions.ts"

/** Audio was sent in real time, from 1,000 ms on. */
const sentAt = (seconds: number) => 1_000 + 1_000 * seconds

it("measures from the sending of the covered audio", () => {
  const captions = new Captions(sentAt, [0.5, 1, 1.5])
  captions.shown("one", 1_700, 0.6)
  captions.shown("one two", 2_300, 1.2)
  expect(captions.captionLags.map(Math.round)).toEqual([100, 100])
})

it("measures each word from its end in the audio, once", () => {
  const captions = new Captions(sentAt, [0.5, 1, 1.5])
  captions.shown("one", 1_700)
  captions.shown("one", 1_900)
  captions.shown("one two three and more", 2_800)
  expect(captions.wordLags).toEqual([200, 800, 300])
  expect(captions.captionLags).toEqual([])
})

it("a word that is shown before its estimated end is not late", () => {
  const captions = new Captions((seconds) => (seconds < 1 ? sentAt(seconds) : undefined), [2])
  captions.shown("early", 1_500)
  expect(captions.wordLags).toEqual([0])
})

it("counts words that were shown and then changed", () => {
  const captions = new Captions(sentAt, [])
  captions.shown("the quick", 1)
  captions.shown("the quiet brown", 2)
  captions.shown("the quiet brown fox", 3)
  // "quick" was replaced, and the final text replaces "fox".
  expect(captions.flicker("the quiet brown dog")).toBe(2 / 4)
  expect(new Captions(sentAt, []).flicker("")).toBeUndefined()
})

it("captions that only grow do not flicker", () => {
  const captions = new Captions(sentAt, [])
  for (const text of ["a", "a b", "a b c"]) captions.shown(text, 1)
  expect(captions.flicker("A b, c.")).toBe(0)
})
