// Properties of the matcher on random grammars. The fast group runs few cases, the long group many.
import fc from "fast-check"
import { expect, it } from "vitest"
import type { CompiledGrammar } from "#engines/grammar/CompiledGrammar.ts"
import { compile } from "#engines/grammar/compile/Compile.ts"
import type { Rules } from "#engines/grammar/Expression.ts"
import { Machine, mostPlaces } from "#engines/grammar/match/Machine.ts"
import { Matcher } from "#engines/grammar/test/Matcher.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { letters, recognises, rules, sentence } from "./RandomRules.ts"

const utf8 = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Undefined if the rules have no sentence, or need more states than a grammar may have: repetitions within repetitions can. */
export const compiledRules = (of: Rules): CompiledGrammar | undefined => {
  const made = compile({ stages: [], rules: of })
  if ("grammar" in made) return made.grammar
  expect(made.problem).toMatch(/^matches no finite text$|^needs more than \d+ states$/)
  return undefined
}

const mutated = (text: string, random: () => number): string => {
  const of = Array.from(text)
  const at = Math.floor(random() * (of.length + 1))
  const letter = letters[Math.floor(random() * letters.length)]!
  const kind = random()
  if (kind < 0.4) of.splice(at, 1)
  else if (kind < 0.7) of.splice(at, 1, letter)
  else of.splice(at, 0, letter)
  return of.join("")
}

/**
 * Whether every byte was accepted and the text may end there; undefined if it was not, and could be read in so many ways that the
 * matcher gave some up.
 */
const reads = (grammar: CompiledGrammar, text: string): boolean | undefined => {
  const matcher = new Matcher(grammar)
  let gaveUp = false
  for (const byte of utf8.encode(text)) {
    if (!matcher.accept(Uint8Array.of(byte))) return gaveUp ? undefined : false
    gaveUp ||= matcher.ways >= mostPlaces
  }
  return matcher.complete || (gaveUp ? undefined : false)
}

/**
 * Longest text, in UTF-16 units, that the reference recogniser is asked about when it is a shortest end. Its time grows with the
 * cube of the length: three counts inside each other make texts of thousands of letters, on which it takes half a minute.
 */
const longestAsked = 400

export const matcherProperties = (numRuns: number): void => {
  it("accepts exactly the sentences of the grammar", () => {
    let sentences = 0
    let others = 0
    fc.assert(
      fc.property(rules, fc.integer(), (of, seed) => {
        const grammar = compiledRules(of)
        if (grammar === undefined) return
        const random = seededRandom(seed)
        for (let time = 0; time < 6; time++) {
          const said = sentence(of, random)
          if (said === undefined) continue
          sentences++
          expect(reads(grammar, said) ?? true).toBe(true)
          const other = mutated(said, random)
          const right = recognises(of, other)
          if (!right) others++
          expect(reads(grammar, other) ?? right).toBe(right)
        }
      }),
      { numRuns },
    )
    // The generator makes enough of both.
    expect(sentences).toBeGreaterThan(numRuns)
    expect(others).toBeGreaterThan(numRuns / 4)
  })

  it("can be ended from everywhere by its shortest end, which nothing undercuts; forced bytes have no alternative", () => {
    let asked = 0
    let ends = 0
    fc.assert(
      fc.property(rules, fc.integer(), (of, seed) => {
        const grammar = compiledRules(of)
        if (grammar === undefined) return
        const random = seededRandom(seed)
        // So few objects are kept that most positions are made anew.
        const matcher = new Matcher(grammar, new Machine(grammar, { objects: 20, tables: 2 }))
        const read: Array<number> = []
        for (let bytes = 0; bytes < 12; bytes++) {
          const end = matcher.shortest()
          expect(end.length).toBe(matcher.shortestLength)
          const whole = strict.decode(Uint8Array.from([...read, ...end]))
          ends++
          if (whole.length <= longestAsked) {
            asked++
            expect(recognises(of, whole)).toBe(true)
          }
          const allowed = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) =>
            matcher.accepts(Uint8Array.of(byte)),
          )
          const forced = matcher.forced()
          if (forced.length > 0) expect(allowed).toEqual([forced[0]])
          else expect(allowed.length !== 1 || matcher.complete).toBe(true)
          if (matcher.finished) expect(allowed).toEqual([])
          const byte = allowed[Math.floor(random() * allowed.length)]
          if (byte === undefined) break
          const before = matcher.shortestLength
          expect(matcher.accept(Uint8Array.of(byte))).toBe(true)
          expect(matcher.shortestLength).toBeGreaterThanOrEqual(before - 1)
          read.push(byte)
        }
      }),
      { numRuns },
    )
    expect(asked).toBeGreaterThan(ends * 0.9)
  })
}
