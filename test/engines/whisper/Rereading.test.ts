// A draft used as guesses for the next tokens: a wrong guess never changes the text, and a draft that is nearly right
// saves nearly all of the calls, whatever was changed, lost or added in it.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Rereading } from "#engines/whisper/Rereading.ts"

const times = 265

/** Calls of a decoder that checks each guess in one call with the token before it; every text comes out whole. */
const callsOf = (draft: ReadonlyArray<number>, text: ReadonlyArray<number>): number => {
  const rereading = new Rereading(draft, times)
  let calls = 0
  let said = 0
  const say = () => {
    rereading.observe(text[said]!)
    said++
  }
  if (text.length > 0) say()
  while (said < text.length) {
    calls++
    const guess = rereading.guess()
    let right = 0
    for (;;) {
      const token = text[said]
      say()
      if (said === text.length || token !== guess[right]) break
      right++
    }
  }
  return calls
}

const letter = fc.integer({ min: 0, max: 60 })
const time = fc.integer({ min: times, max: times + 1500 })
const text = fc.array(fc.oneof({ weight: 9, arbitrary: letter }, { weight: 1, arbitrary: time }), {
  minLength: 30,
  maxLength: 120,
})

describe("Rereading", () => {
  it("takes any draft for any text, and never needs more calls than tokens", () => {
    fc.assert(
      fc.property(text, fc.array(letter), (said, draft) => {
        expect(callsOf(draft, said)).toBeLessThanOrEqual(said.length)
      }),
    )
  })

  it("reads a right draft in guesses of 24", () => {
    fc.assert(
      fc.property(text, (said) => {
        expect(callsOf(said, said)).toBeLessThanOrEqual(Math.ceil(said.length / 24))
      }),
    )
  })

  it("a time that moved costs one call", () => {
    fc.assert(
      fc.property(text, fc.nat(), time, time, (said, at, was, is) => {
        const place = at % said.length
        const draft = said.with(place, was)
        const moved = said.with(place, is)
        expect(callsOf(draft, moved)).toBeLessThanOrEqual(Math.ceil(said.length / 24) + 1)
      }),
    )
  })

  it("goes on behind letters that were changed, lost or added", () => {
    // Every letter once: then the matching place is unambiguous.
    const said = Array.from({ length: 100 }, (_, i) => i)
    const cuts = fc.tuple(
      fc.integer({ min: 5, max: 90 }),
      fc.nat({ max: 3 }),
      fc.array(letter, { maxLength: 3 }),
    )
    fc.assert(
      fc.property(cuts, ([at, lost, added]) => {
        const draft = [...said.slice(0, at), ...added.map((each) => 200 + each), ...said.slice(at + lost)]
        expect(callsOf(draft, said)).toBeLessThanOrEqual(5 + 8)
      }),
    )
  })
})
