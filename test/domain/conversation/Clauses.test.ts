// Pieces of an answer: nothing is lost however the text arrives, the first comes at the first clause, and none is too long.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Clauses } from "#domain/conversation/Clauses.ts"

const piecesOf = (chunks: ReadonlyArray<string>): ReadonlyArray<string> => {
  let clauses = new Clauses()
  const pieces = chunks.flatMap((chunk) => {
    const pushed = clauses.push(chunk)
    clauses = pushed.clauses
    return pushed.pieces
  })
  return clauses.rest === "" ? pieces : [...pieces, clauses.rest]
}

const text = fc.array(
  fc.constantFrom("Hello", "there", "word", "a", "of,", "yes;", "end.", "why?", "no!", "\n", "x".repeat(300)),
  { maxLength: 60 },
)

it("are the whole text, the same however it is split, and at most 240 characters", () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 40 }), (words, size) => {
      const whole = words.join(" ")
      const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
        whole.slice(at * size, (at + 1) * size),
      )
      const pieces = piecesOf(chunks)
      expect(pieces.join("")).toBe(whole)
      expect(pieces).toEqual(piecesOf([...whole]))
      for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(241)
    }),
  )
})

it("begin with a clause and go on with sentences", () => {
  expect(piecesOf(["Well, of course I can, because it is easy. And then, ", "we go. End"])).toEqual([
    "Well, of course I can, ",
    "because it is easy. ",
    "And then, we go. ",
    "End",
  ])
})
