// Phrases in the decoding loop of transducers: a made-up network whose scores depend on the frame and on the tokens so far.
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { KeywordGraph, TokenSpellings } from "#engines/shared/listening/KeywordGraph.ts"
import { KeywordSearch } from "#engines/shared/listening/KeywordSearch.ts"
import {
  decode,
  lastingTokens,
  nothingDecoded,
  type Rules,
  type Scorer,
  settle,
} from "#engines/transducer/decoding/Greedy.ts"
import { runs } from "../../../support/groups/Runs.ts"

const pieces = [" a", " b", "a", "b", "c", ""]
const blank = pieces.length - 1
const rules: Rules = { tokens: pieces.length, blank, durations: [], mostPerFrame: 3, isSilent: () => false }
const spellings = new TokenSpellings(pieces.map((piece) => new TextEncoder().encode(piece)))
const searchOf = (phrases: ReadonlyArray<string>) =>
  new KeywordSearch(new KeywordGraph(phrases, spellings), (token) => (token === blank ? "blank" : "text"))

type Network = (frame: number, said: ReadonlyArray<number>) => Float32Array
const scorerOf = (network: Network): Scorer<ReadonlyArray<number>, null, never> => ({
  start: [],
  score: (column, state) => Effect.succeed({ row: network(column[0]!, state), after: null, state }),
  extended: ({ state }, token) => [...state, token],
})

const textOf = (tokens: ReadonlyArray<{ readonly token: number }>) =>
  tokens.map(({ token }) => pieces[token]).join("")

/** Decodes in chunks; what was shown after each of them, and the end. */
const decoded = (
  network: Network,
  frames: number,
  sizes: ReadonlyArray<number>,
  search: KeywordSearch | undefined,
) => {
  const decoding = { rules, scorer: scorerOf(network), search }
  const shown: Array<string> = []
  let at = nothingDecoded<ReadonlyArray<number>>([])
  let first = 0
  for (const size of [...sizes, frames]) {
    const count = Math.min(size, frames - first)
    const from = first
    at = Effect.runSync(decode(at, from, count, (frame) => Float32Array.of(from + frame), decoding))
    first += count
    shown.push(textOf(lastingTokens(at)))
  }
  const { tokens } = Effect.runSync(settle(at, frames, decoding))
  return { shown, text: textOf(tokens), tokens }
}

/** A letter of `said` at every third frame; `other` is so far below it at a frame. */
const spoken =
  (
    said: ReadonlyArray<string>,
    other: Readonly<Record<number, readonly [piece: string, gap: number]>>,
  ): Network =>
  (frame, before) => {
    const row = new Float32Array(pieces.length).fill(-20)
    const place = Math.floor(frame / 3)
    const isDue = frame % 3 === 0 && before.length === place && place < said.length
    row[isDue ? pieces.indexOf(said[place]!) : blank] = 0
    const also = other[place]
    if (isDue && also !== undefined) row[pieces.indexOf(also[0])] = -also[1]
    return row
  }

describe("phrases", () => {
  it("are written where their tokens are a little less probable", () => {
    const network = spoken([" a", "b", "c"], { 1: ["a", 1.5] })
    expect(decoded(network, 30, [], undefined).text).toBe(" abc")
    const { shown, text, tokens } = decoded(network, 30, [5, 5], searchOf(["aac"]))
    expect(text).toBe(" aac")
    expect(tokens.map(({ frame }) => frame)).toEqual([0, 3, 6])
    // Shown only once nothing can take it back.
    expect(shown.slice(0, 2)).toEqual([" a", " a"])
  })

  it("are given back if they are not completed", () => {
    const network = spoken([" a", "b", "b", " b"], { 1: ["a", 1.5] })
    expect(decoded(network, 30, [4, 2, 1], searchOf(["aac"])).text).toBe(" abb b")
    // Also at the end of the audio.
    expect(decoded(spoken([" a", "b"], { 1: ["a", 1] }), 6, [], searchOf(["aac"])).text).toBe(" ab")
  })

  const random =
    (seed: number, bias: number): Network =>
    (frame, said) => {
      let state = seed
      return Float32Array.from(pieces, (_, token) => {
        for (const value of [frame, token, ...said.slice(-3), said.length])
          state = Math.imul(state ^ (value + 0x9e37), 0x85ebca6b) ^ (state >>> 13)
        return 8 * ((state >>> 0) / 2 ** 32) + (token === blank ? bias : 0)
      })
    }

  it("of any kind: chunks of any size give the same text, and what was shown is its beginning", () => {
    let changed = 0
    fc.assert(
      fc.property(
        fc.nat(),
        fc.double({ min: -1, max: 4, noNaN: true }),
        fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 12 }),
        fc.array(fc.string({ unit: fc.constantFrom(..."abc"), minLength: 2, maxLength: 4 }), {
          minLength: 1,
          maxLength: 4,
        }),
        (seed, bias, sizes, phrases) => {
          const network = random(seed, bias)
          const search = searchOf(phrases)
          const whole = decoded(network, 60, [], search)
          const parts = decoded(network, 60, sizes, search)
          expect(parts.tokens).toEqual(whole.tokens)
          for (const text of parts.shown) expect(whole.text.startsWith(text)).toBe(true)
          const plain = decoded(network, 60, sizes, undefined)
          if (plain.text === whole.text) return
          changed++
          expect(phrases.some((phrase) => ` ${whole.text}`.includes(` ${phrase}`))).toBe(true)
        },
      ),
      { numRuns: runs(300, 3_000) },
    )
    expect(changed).toBeGreaterThan(20)
  })
})
