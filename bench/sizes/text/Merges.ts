// Byte-pair merges for a generated vocabulary: first learned from a list of English words, so that ordinary text has about
// as many tokens as with a trained vocabulary, then made up until the vocabulary is full. Pure.
import type { RandomWords } from "../RandomWords.ts"

export interface Merge {
  readonly left: string
  readonly right: string
}

const joined = ({ left, right }: Merge): string => left + right

const keyOf = (left: string, right: string): string => `${left} ${right}`

/** For each pair: how often it occurs in the words, and in which words. */
class PairCounts {
  readonly #counts = new Map<string, number>()
  readonly #words = new Map<string, Set<number>>()

  add(word: number, parts: ReadonlyArray<string>, times: 1 | -1): void {
    for (let at = 1; at < parts.length; at++) {
      const key = keyOf(parts[at - 1]!, parts[at]!)
      const count = (this.#counts.get(key) ?? 0) + times
      if (count === 0) this.#counts.delete(key)
      else this.#counts.set(key, count)
      const words = this.#words.get(key)
      if (words !== undefined) words.add(word)
      else this.#words.set(key, new Set([word]))
    }
  }

  /** The pair that occurs most often, the first in alphabetical order of several; undefined when none is left. */
  most(): string | undefined {
    let best: string | undefined
    let most = 0
    for (const [key, count] of this.#counts)
      if (count > most || (count === most && best !== undefined && key < best)) {
        best = key
        most = count
      }
    return best
  }

  /** Words that have, or had, the pair. */
  wordsWith(key: string): ReadonlyArray<number> {
    return [...(this.#words.get(key) ?? [])]
  }
}

const replaced = (parts: ReadonlyArray<string>, { left, right }: Merge): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = 0; at < parts.length; at++) {
    if (parts[at] === left && parts[at + 1] === right) {
      found.push(left + right)
      at++
    } else found.push(parts[at]!)
  }
  return found
}

/** Merges until each word is one token. Words are spelled as the vocabulary spells bytes. */
export const learnedMerges = (words: ReadonlyArray<string>): ReadonlyArray<Merge> => {
  const split = words.map((word): ReadonlyArray<string> => [...word])
  const counts = new PairCounts()
  for (const [word, parts] of split.entries()) counts.add(word, parts, 1)
  const merges: Array<Merge> = []
  for (let key = counts.most(); key !== undefined; key = counts.most()) {
    const [left = "", right = ""] = key.split(" ")
    const merge = { left, right }
    merges.push(merge)
    for (const word of counts.wordsWith(key)) {
      const parts = split[word]!
      counts.add(word, parts, -1)
      const next = replaced(parts, merge)
      counts.add(word, next, 1)
      split[word] = next
    }
  }
  return merges
}

/** Longest part of a made-up token, in characters: such a token is two short pieces of words. */
const longestPart = 5

/** `count` further merges, each of two tokens that `merges` made, each making a token that is in no other. */
export const madeUpMerges = (
  merges: ReadonlyArray<Merge>,
  count: number,
  random: RandomWords,
): ReadonlyArray<Merge> => {
  const known = new Set(merges.map(joined))
  const parts = [...known].filter((token) => token.length <= longestPart)
  const endings = parts.filter((token) => /^[a-z]+$/.test(token))
  const made: Array<Merge> = []
  while (made.length < count) {
    const merge = { left: parts[random.below(parts.length)]!, right: endings[random.below(endings.length)]! }
    const token = joined(merge)
    if (known.has(token)) continue
    known.add(token)
    made.push(merge)
  }
  return made
}
