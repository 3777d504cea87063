// How many tokens the shortest end of a reply needs: spelled by the longest token that fits, again and again. This is not
// always the fewest, but it can always be done.
import type { CompiledGrammar } from "../CompiledGrammar.ts"
import type { Frame, Position } from "./Frames.ts"
import type { Machine } from "./Machine.ts"
import { ShortestText } from "./ShortestText.ts"
import type { TokenTrie } from "./TokenTrie.ts"

/** Spells `byteAt`, which gives -1 behind the end. Undefined if that takes more than `most` tokens or cannot be done. */
export const spell = (
  trie: TokenTrie,
  byteAt: (index: number) => number,
  most: number,
): ReadonlyArray<number> | undefined => {
  const tokens: Array<number> = []
  for (let at = 0; byteAt(at) >= 0; ) {
    if (tokens.length >= most) return undefined
    let node = 0
    let token = -1
    let next = at
    for (let index = at; ; ) {
      const byte = byteAt(index)
      node = byte < 0 ? -1 : trie.child(node, byte)
      if (node < 0) break
      index++
      const here = trie.tokenAt(node)
      if (here >= 0) {
        token = here
        next = index
      }
    }
    if (token < 0) return undefined
    tokens.push(token)
    at = next
  }
  return tokens
}

/** Of a token that is spelled: a few look-ups in the tree for each of its bytes. Measured. */
const tokenWork = 20

export class Spelling {
  readonly #grammar: CompiledGrammar
  readonly #machine: Machine
  readonly #trie: TokenTrie

  constructor(machine: Machine, trie: TokenTrie) {
    this.#grammar = machine.grammar
    this.#machine = machine
    this.#trie = trie
  }

  /** The tokens of the shortest end; undefined if they are more than `most`. */
  shortest(position: Position, most: number): ReadonlyArray<number> | undefined {
    if (position.shortest === 0) return []
    if (!this.#mayFit(position.shortest, most)) return undefined
    const place = position.places.find(({ shortest }) => shortest === position.shortest)
    if (place === undefined) return undefined
    return this.#spell(new ShortestText(this.#grammar, place.frame, place.state), most)
  }

  #spell(text: ShortestText, most: number): ReadonlyArray<number> | undefined {
    const tokens = spell(this.#trie, (index) => text.at(index), most)
    this.#machine.work += tokenWork * (tokens?.length ?? most)
    return tokens
  }

  /** True if the shortest end takes at most `left` tokens. */
  fits(position: Position, left: number): boolean {
    // Each byte on the shortest way is a token by itself.
    if (position.shortest <= left) return true
    if (position.tokens >= 0) return position.tokens <= left
    const tokens = this.shortest(position, left)
    if (tokens === undefined) return false
    position.tokens = tokens.length
    return true
  }

  /** Tokens from where the frame's automaton has ended, at most `most`; else Infinity. */
  after(frame: Frame, most: number): number {
    if (frame.tokens >= 0) return frame.tokens
    if (!this.#mayFit(frame.after, most)) return Number.POSITIVE_INFINITY
    const tokens = this.#spell(new ShortestText(this.#grammar, frame, -1), most)
    if (tokens === undefined) return Number.POSITIVE_INFINITY
    frame.tokens = tokens.length
    return frame.tokens
  }

  #mayFit(bytes: number, tokens: number): boolean {
    return Number.isFinite(bytes) && bytes <= tokens * this.#trie.longest
  }
}
