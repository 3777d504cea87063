// Which tokens may follow a position: a walk over the tree of all tokens. What is found is kept for each place with the
// upper frames of its stack, because what lies deeper seldom matters: the same string in another list has the same mask.
import { LRUCache } from "lru-cache"
import type { Place, Position } from "./Frames.ts"
import type { Machine } from "./Machine.ts"
import type { Spelling } from "./Spelling.ts"
import { add, type TokenTrie } from "./TokenTrie.ts"

/** Frames of a stack that are tried in order, until no token leads below them. */
const frameCounts = [6, 32, Number.POSITIVE_INFINITY]
/** Masks kept for each grammar: 1.2 MB at 151,936 tokens. A guess. */
const keptMasks = 64

/** With more places than this, a position is walked as a whole instead of once for each place. A guess. */
const mostSingle = 4

interface Mask {
  /** Undefined: some token leads below the frames of the place. */
  readonly tokens: Uint32Array | undefined
  /** The positions after the tokens. */
  readonly after: ReadonlyArray<Position>
}

export class Masks {
  readonly #machine: Machine
  readonly #trie: TokenTrie
  readonly #spelling: Spelling
  readonly #kept = new LRUCache<Position, Mask>({ max: keptMasks })
  /** Positions along the path to the current node. */
  readonly #path: Array<Position>
  #walks = 0
  #epoch = 0

  constructor(machine: Machine, trie: TokenTrie, spelling: Spelling) {
    this.#machine = machine
    this.#trie = trie
    this.#spelling = spelling
    this.#path = new Array(trie.longest + 1)
  }

  /**
   * Adds the tokens with text that may follow, after which the reply can still be ended with `left` tokens, this one
   * included.
   */
  collect(position: Position, left: number, into: Uint32Array): void {
    if (this.#epoch !== this.#machine.epoch) this.#kept.clear()
    this.#epoch = this.#machine.epoch
    const masks =
      position.places.length > mostSingle
        ? [this.#wholeMask(position, left)]
        : position.places.map((place) => this.#maskOf(place, left))
    if (masks.every((mask) => mask !== undefined)) {
      for (const mask of masks) for (let at = 0; at < into.length; at++) into[at] = into[at]! | mask[at]!
      return
    }
    this.#walk(position, (end) => Number.isFinite(end.shortest) && this.#spelling.fits(end, left - 1), into)
  }

  /** Undefined if `left` may be too few for some of the tokens. */
  #maskOf(place: Place, left: number): Uint32Array | undefined {
    for (const frames of frameCounts) {
      const { below, position } = this.#machine.cut(place, frames)
      const mask = this.#kept.get(position) ?? this.#make(position)
      if (mask.tokens === undefined) continue
      const fits = (end: Position) =>
        end.shortest + (below?.after ?? 0) <= left - 1 ||
        (below === undefined
          ? this.#spelling.fits(end, left - 1)
          : this.#spelling.fits(end, left - 1 - this.#spelling.after(below, left)))
      return left === Number.POSITIVE_INFINITY || mask.after.every(fits) ? mask.tokens : undefined
    }
    return undefined
  }

  /** As `#maskOf`, of all places at once. */
  #wholeMask(position: Position, left: number): Uint32Array | undefined {
    const { after, tokens } = this.#kept.get(position) ?? this.#make(position)
    const fits = (end: Position) => this.#spelling.fits(end, left - 1)
    return left === Number.POSITIVE_INFINITY || after.every(fits) ? tokens : undefined
  }

  #make(position: Position): Mask {
    const tokens = new Uint32Array(this.#trie.words)
    const after: Array<Position> = []
    const isWhole = this.#walk(
      position,
      (end) => {
        if (!Number.isFinite(end.shortest)) return false
        after.push(end)
        return true
      },
      tokens,
    )
    const mask = { tokens: isWhole ? tokens : undefined, after: isWhole ? after : [] }
    this.#kept.set(position, mask)
    return mask
  }

  /** `judge` is called once for each position after a token. False if a position was open: then the walk has ended. */
  #walk(from: Position, judge: (end: Position) => boolean, into: Uint32Array): boolean {
    const { behind, byte, depth, nodes, tokens, tokensFrom } = this.#trie
    const machine = this.#machine
    const path = this.#path
    const walk = ++this.#walks
    path[0] = from
    for (let node = 1; node < nodes; ) {
      const level = depth[node]!
      const next = machine.read(path[level - 1]!, byte[node]!)
      if (next === undefined) {
        node = behind[node]!
        continue
      }
      if (next.open) return false
      path[level] = next
      const last = tokensFrom[++node]!
      let at = tokensFrom[node - 1]!
      if (at === last) continue
      if (next.walk !== walk) {
        next.walk = walk
        next.allowed = judge(next)
      }
      if (next.allowed) for (; at < last; at++) add(into, tokens[at]!)
    }
    return true
  }
}
