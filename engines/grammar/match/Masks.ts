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

/** Work of a slice, see `Machine.work`: 0.3 ms, after which other replies go on. The first mask of a text of any length takes 45. */
export const sliceWork = 10_000

/** Work in slices: a pause behind each. */
export type Slices<A = void> = Generator<void, A, void>

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
  #walks = 0
  /** The work of the machine at which the present slice ends. */
  #pauseAt = 0
  #epoch = 0

  constructor(machine: Machine, trie: TokenTrie, spelling: Spelling) {
    this.#machine = machine
    this.#trie = trie
    this.#spelling = spelling
  }

  /**
   * Adds the tokens with text that may follow, after which the reply can still be ended with `left` tokens, this one
   * included. Pauses after each slice of its work.
   */
  *collect(position: Position, left: number, into: Uint32Array): Slices {
    if (this.#epoch !== this.#machine.epoch) this.#kept.clear()
    this.#epoch = this.#machine.epoch
    this.#pauseAt = this.#machine.work + sliceWork
    const masks: Array<Uint32Array | undefined> = []
    if (position.places.length > mostSingle) masks.push(yield* this.#wholeMask(position, left))
    else for (const place of position.places) masks.push(yield* this.#maskOf(place, left))
    if (masks.every((mask) => mask !== undefined)) {
      for (const mask of masks) for (let at = 0; at < into.length; at++) into[at] = into[at]! | mask[at]!
      return
    }
    const judge = (end: Position) => Number.isFinite(end.shortest) && this.#spelling.fits(end, left - 1)
    yield* this.#walk(position, judge, into)
  }

  /** Undefined if `left` may be too few for some of the tokens. */
  *#maskOf(place: Place, left: number): Slices<Uint32Array | undefined> {
    for (const frames of frameCounts) {
      const { below, position } = this.#machine.cut(place, frames, this.#trie.longest)
      const mask = this.#kept.get(position) ?? (yield* this.#make(position))
      if (mask.tokens === undefined) continue
      const fits = (end: Position) =>
        end.shortest + (below?.after ?? 0) <= left - 1 ||
        (below === undefined
          ? this.#spelling.fits(end, left - 1)
          : this.#spelling.fits(end, left - 1 - this.#spelling.after(below, left)))
      return (yield* this.#every(mask.after, left, fits)) ? mask.tokens : undefined
    }
    return undefined
  }

  /** As `#maskOf`, of all places at once. */
  *#wholeMask(position: Position, left: number): Slices<Uint32Array | undefined> {
    const { after, tokens } = this.#kept.get(position) ?? (yield* this.#make(position))
    const fits = (end: Position) => this.#spelling.fits(end, left - 1)
    return (yield* this.#every(after, left, fits)) ? tokens : undefined
  }

  *#every(
    positions: ReadonlyArray<Position>,
    left: number,
    fits: (end: Position) => boolean,
  ): Slices<boolean> {
    if (left === Number.POSITIVE_INFINITY) return true
    for (const position of positions) {
      this.#machine.work++
      if (!fits(position)) return false
      if (this.#machine.work >= this.#pauseAt) yield* this.#pause()
    }
    return true
  }

  /** The next slice begins when the caller goes on. */
  *#pause(): Slices {
    yield
    this.#pauseAt = this.#machine.work + sliceWork
  }

  *#make(position: Position): Slices<Mask> {
    const tokens = new Uint32Array(this.#trie.words)
    const after: Array<Position> = []
    const judge = (end: Position): boolean => {
      if (!Number.isFinite(end.shortest)) return false
      after.push(end)
      return true
    }
    const isWhole = yield* this.#walk(position, judge, tokens)
    const mask = { tokens: isWhole ? tokens : undefined, after: isWhole ? after : [] }
    this.#kept.set(position, mask)
    return mask
  }

  /** `judge` is called for each position after a token. False if a position was open: then the walk has ended. */
  *#walk(from: Position, judge: (end: Position) => boolean, into: Uint32Array): Slices<boolean> {
    const { behind, byte, depth, nodes, tokens, tokensFrom } = this.#trie
    const machine = this.#machine
    /** Positions along the path to the current node. */
    const path: Array<Position> = [from]
    // Another walk may judge the same positions while this one pauses: then they are judged again.
    let walk = ++this.#walks
    for (let node = 1; node < nodes; ) {
      machine.work++
      if (machine.work >= this.#pauseAt) {
        yield* this.#pause()
        walk = ++this.#walks
      }
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
