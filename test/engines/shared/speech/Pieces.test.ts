// Cutting phonemes into pieces: bounds, order, completeness, and how little of a text the first piece needs.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { cutAt, type Piece, PieceReader } from "#engines/shared/speech/Pieces.ts"
import { fromVocabulary } from "#engines/shared/speech/Symbols.ts"

const alphabet = 'abcdefgh ;:,.!?—…"()“”ˈ'
const symbols = fromVocabulary(Object.fromEntries([...`$${alphabet}`].map((symbol, id) => [symbol, id])))

const fragmentsOf = (parts: ReadonlyArray<string>, taken: { count: number } = { count: 0 }) =>
  (async function* () {
    for (const part of parts) {
      taken.count++
      yield { phonemes: part, words: "" }
    }
  })()

const readAll = (parts: ReadonlyArray<string>, maxSymbols: number): Promise<ReadonlyArray<Piece>> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const reader = new PieceReader(fragmentsOf(parts), symbols, { maxSymbols })
      const pieces: Array<Piece> = []
      for (let piece = yield* reader.next; piece !== undefined; piece = yield* reader.next) pieces.push(piece)
      return pieces
    }),
  )

const fragment = fc.string({ unit: fc.constantFrom(...`${alphabet}xyz$`), maxLength: 40 })
const sounds = (text: string): string => text.replace(/[^a-h]/g, "")

describe("pieces", () => {
  it("keep every sound, in order, within the bound", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fragment, { maxLength: 60 }),
        fc.integer({ min: 20, max: 600 }),
        async (parts, max) => {
          const pieces = await readAll(parts, max)
          expect(pieces.map((piece) => sounds(piece.phonemes)).join("")).toBe(sounds(parts.join("")))
          for (const [index, { phonemes }] of pieces.entries()) {
            const ids = symbols.ids(phonemes)
            expect(ids.length - 2).toBe([...phonemes].length)
            expect(ids.length - 2).toBeLessThanOrEqual(Math.min(index === 0 ? 60 : max, 510))
            expect(sounds(phonemes)).not.toBe("")
            expect(phonemes).toBe(phonemes.trim())
          }
        },
      ),
    ))

  it("depend on the text alone, not on how it arrives", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fragment, { minLength: 1, maxLength: 30 }), async (parts) => {
        const whole = await readAll(parts, 100)
        expect(await readAll(parts, 100)).toEqual(whole)
      }),
      { numRuns: 30 },
    ))

  it("begins with the first phrase and then takes whole sentences", async () => {
    const pieces = await readAll(
      ["abcdefgh abcdefgh", ", ", "abc", ". ", "abc abc", "; ", "abc", "! ", "abc", "."],
      20,
    )
    expect(pieces.map(({ pause, phonemes }) => ({ pause, phonemes }))).toEqual([
      { phonemes: "abcdefgh abcdefgh,", pause: "comma" },
      { phonemes: "abc.", pause: "sentence" },
      { phonemes: "abc abc; abc! abc.", pause: "sentence" },
    ])
  })

  it("reads no more of the text than the first piece needs", async () => {
    for (const sentences of [2, 20, 2000]) {
      const taken = { count: 0 }
      const parts = Array.from({ length: sentences }, () => ["abcdefgh abcdefgh", ". "]).flat()
      const reader = new PieceReader(fragmentsOf(parts, taken), symbols, { maxSymbols: 200 })
      const piece = await Effect.runPromise(reader.next)
      expect(piece?.phonemes).toBe("abcdefgh abcdefgh.")
      expect(taken.count).toBe(2)
    }
  })

  it("cuts at a sentence, else a clause, else a comma, else a word, else anywhere", () => {
    expect(cutAt([..."ab. cd; ef, gh ab"], 15)).toBe(3)
    expect(cutAt([..."abc cd; ef, gh ab"], 15)).toBe(7)
    expect(cutAt([..."abc cdd ef, gh ab"], 15)).toBe(11)
    expect(cutAt([..."abc cdd eff gh ab"], 15)).toBe(14)
    expect(cutAt([..."abcabcabcabcabcabc"], 15)).toBe(15)
    expect(cutAt([..."ab “cd.” ef"], 9)).toBe(8)
  })

  it("has no piece for a text without sounds", async () => {
    expect(await readAll([" ", "…", "!!", "xyz", "“”", "ˈ"], 100)).toEqual([])
  })
})
