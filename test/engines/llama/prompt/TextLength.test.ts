// Which texts are refused before they are tokenized whole, and how much of them is tokenized for that.
import fc from "fast-check"
import { expect, it } from "vitest"
import { estimateOfTooLong, type TextLimits } from "#engines/llama/prompt/TextLength.ts"

/** A word of up to 7 letters with the blank before it is a token, and each letter of a longer one. */
const countOf = (text: string): number =>
  (text.match(/ ?[^ ]+| +/g) ?? []).reduce((sum, word) => sum + (word.length <= 8 ? 1 : word.length), 0)

const run = (texts: ReadonlyArray<string>, limits: TextLimits) => {
  const counting = estimateOfTooLong(texts, limits)
  let tokenized = 0
  let step = counting.next()
  while (step.done !== true) {
    tokenized += step.value.length
    step = counting.next(countOf(step.value))
  }
  return { estimate: step.value, tokenized }
}

const limits = { contextTokens: 512, longestText: 512 * 64 }

it("eight megabytes are refused after one piece, whatever they consist of", () => {
  for (const text of ["a ".repeat(4e6), "x".repeat(8e6), " ".repeat(8e6), "😀".repeat(4e6)]) {
    const { estimate, tokenized } = run([text], limits)
    expect(estimate).toBeGreaterThanOrEqual(limits.contextTokens)
    expect(tokenized).toBeLessThanOrEqual(16_384)
  }
  expect(run(["a ".repeat(4e6)], limits).estimate).toBeCloseTo(4e6, -4)
})

it("a text that fits is never refused, and one that is refused does not fit", () => {
  const word = fc.tuple(
    fc.constantFrom("a", "fox", "elephant", "extraordinarily", "é", "😀"),
    fc.constantFrom(" ", "  ", ""),
  )
  const texts = fc
    .tuple(
      fc.array(fc.array(word, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 900 }),
    )
    .map(([drawn, times]) =>
      drawn.map((words) =>
        words
          .map(([letters, space]) => letters + space)
          .join("")
          .repeat(times),
      ),
    )
  fc.assert(
    fc.property(texts, fc.constantFrom(64, 512, 4_096, 60_000), (all, contextTokens) => {
      const { estimate, tokenized } = run(all, { contextTokens, longestText: contextTokens * 64 })
      const tokens = all.reduce((sum, text) => sum + countOf(text), 0)
      if (estimate !== undefined) expect(tokens).toBeGreaterThan(contextTokens)
      // The pieces that fit, and the one with which the texts no longer did.
      expect(tokenized).toBeLessThanOrEqual(64 * contextTokens + 16_384)
    }),
    { numRuns: 300 },
  )
})
