// Properties of constraints on random grammars and random vocabularies. The fast group runs few cases, the long group many.
import fc from "fast-check"
import { expect, it } from "vitest"
import type { Constraint } from "#engines/grammar/Constraint.ts"
import { BoundGrammar } from "#engines/grammar/match/ReplyConstraint.ts"
import { TokenTrie } from "#engines/grammar/match/TokenTrie.ts"
import { Matcher } from "#engines/grammar/test/Matcher.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { compiledRules } from "./MatcherProperties.ts"
import { letters, recognises, rules } from "./RandomRules.ts"

const utf8 = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Two end tokens, two without text, all single bytes, and the given texts, of which some are given twice. */
export const vocabulary = (texts: ReadonlyArray<Uint8Array>): TokenTrie => {
  const bytes = [
    ...Array.from({ length: 4 }, () => new Uint8Array(0)),
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...texts,
  ]
  return TokenTrie.of({
    size: bytes.length,
    bytes: (token) => bytes[token]!,
    isEnd: (token) => token === 0 || token === 2,
  })
}

/** Texts of some letters, cut anywhere, also within a character. */
const vocabularies = fc
  .array(
    fc
      .tuple(fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 4 }), fc.nat(2), fc.nat(2))
      .map(([of, from, to]) => {
        const bytes = utf8.encode(of.join(""))
        return bytes.slice(Math.min(from, bytes.length - 1), Math.max(bytes.length - to, from + 1))
      }),
    { maxLength: 60 },
  )
  .map((texts) => vocabulary(texts.filter((text) => text.length > 0)))

const tokensOf = (trie: TokenTrie): ReadonlyArray<number> =>
  Array.from({ length: trie.size }, (_, token) => token)

const allowed = (trie: TokenTrie, constraint: Constraint, left: number): ReadonlyArray<number> =>
  tokensOf(trie).filter((token) => constraint.allows(token, left))

/** The tokens that the mask leaves. */
export const unmasked = (trie: TokenTrie, constraint: Constraint, left: number): ReadonlyArray<number> => {
  const logits = new Float32Array(trie.size)
  constraint.mask(logits, left)
  return tokensOf(trie).filter((token) => logits[token] === 0)
}

const pick = <A>(of: ReadonlyArray<A>, random: () => number): A => of[Math.floor(random() * of.length)]!

/** Tokens of the shortest reply. A rare grammar has thousands, each of which asks about every token: such a case took 219 s. */
const mostTokens = 200

export const constraintProperties = (numRuns: number): void => {
  it("masks exactly the tokens that are not allowed: those whose bytes may not follow", () => {
    fc.assert(
      fc.property(rules, vocabularies, fc.integer(), (of, trie, seed) => {
        const grammar = compiledRules(of)
        if (grammar === undefined) return
        const random = seededRandom(seed)
        const bound = new BoundGrammar(grammar, trie)
        // The second reply finds the masks of the first.
        for (let reply = 0; reply < 2; reply++) {
          const constraint = bound.reply()
          const matcher = new Matcher(grammar)
          for (let tokens = 0; tokens < 8; tokens++) {
            const may = tokensOf(trie).filter((token) =>
              trie.isEnd(token)
                ? matcher.complete
                : trie.bytesOf(token).length > 0 && matcher.accepts(trie.bytesOf(token)),
            )
            expect(unmasked(trie, constraint, 100_000)).toEqual(may)
            expect(allowed(trie, constraint, 100_000)).toEqual(may)
            expect(constraint.complete()).toBe(matcher.complete)
            expect(constraint.finished()).toBe(may.every((token) => trie.isEnd(token)))
            const texts = may.filter((token) => !trie.isEnd(token))
            if (texts.length === 0) break
            const token = pick(texts, random)
            matcher.accept(trie.bytesOf(token))
            constraint.accept(token)
          }
        }
      }),
      { numRuns },
    )
  })

  it("completes a reply of random tokens in any number of tokens that its shortest end had at the start", () => {
    let steered = 0
    fc.assert(
      fc.property(rules, vocabularies, fc.integer(), fc.nat(12), (of, trie, seed, more) => {
        const grammar = compiledRules(of)
        if (grammar === undefined) return
        const random = seededRandom(seed)
        const bound = new BoundGrammar(grammar, trie)
        // Undefined beyond so many tokens.
        const least = bound.spelling.shortest(bound.machine.start(), 10_000)?.length
        if (least === undefined || least > mostTokens) return
        const constraint = bound.reply()
        const read: Array<number> = []
        for (let left = least + more; left > 0 && !constraint.finished(); ) {
          const forced = constraint.forced(left)
          for (const token of forced) {
            expect(constraint.allows(token, left--)).toBe(true)
            constraint.accept(token)
            read.push(...trie.bytesOf(token))
          }
          if (left === 0 || constraint.finished()) break
          const may = allowed(trie, constraint, left)
          expect(unmasked(trie, constraint, left)).toEqual(may)
          expect(may.length).toBeGreaterThan(0)
          if (unmasked(trie, constraint, 100_000).length > may.length) steered++
          // Long tokens, because they open more.
          const token = may
            .map((each) => [each, random() * (1 + trie.bytesOf(each).length)] as const)
            .reduce((best, each) => (each[1] > best[1] ? each : best))[0]
          constraint.accept(token)
          if (trie.isEnd(token)) break
          read.push(...trie.bytesOf(token))
          left--
        }
        expect(constraint.complete()).toBe(true)
        expect(recognises(of, strict.decode(Uint8Array.from(read)))).toBe(true)
      }),
      { numRuns },
    )
    expect(steered).toBeGreaterThan(numRuns / 20)
  })

  it("forces only tokens with which every continuation begins, and leaves out those that could go on", () => {
    fc.assert(
      fc.property(rules, vocabularies, fc.integer(), (of, trie, seed) => {
        const grammar = compiledRules(of)
        if (grammar === undefined) return
        const random = seededRandom(seed)
        const constraint = new BoundGrammar(grammar, trie).reply()
        const matcher = new Matcher(grammar)
        for (let tokens = 0; tokens < 8; tokens++) {
          const forced = constraint.forced()
          const must = matcher.forced()
          let at = 0
          for (const token of forced) {
            const bytes = trie.bytesOf(token)
            // No token that may follow begins with this one and covers more than the rest of what must follow.
            const rest = must.slice(at)
            const longer = tokensOf(trie).filter((each) => {
              const of = trie.bytesOf(each)
              return (
                !trie.isEnd(each) &&
                of.length > rest.length &&
                rest.every((byte, i) => of[i] === byte) &&
                matcher.accepts(of)
              )
            })
            expect(longer).toEqual([])
            expect(rest.slice(0, bytes.length)).toEqual(bytes)
            expect(matcher.accept(bytes)).toBe(true)
            constraint.accept(token)
            at += bytes.length
          }
          const may = allowed(trie, constraint, 100_000).filter((token) => !trie.isEnd(token))
          if (may.length === 0) break
          const token = pick(may, random)
          expect(matcher.accept(trie.bytesOf(token))).toBe(true)
          constraint.accept(token)
        }
      }),
      { numRuns },
    )
  })
}
