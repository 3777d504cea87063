// The constraint of one reply: a position in a grammar that moves with each token. Steers the reply towards its shortest
// end when tokens run out.
import type { CompiledGrammar } from "../CompiledGrammar.ts"
import type { Constraint } from "../Constraint.ts"
import { Forced, type Tokenize } from "./Forced.ts"
import type { Position } from "./Frames.ts"
import { Machine } from "./Machine.ts"
import { Masks, type Slices } from "./Masks.ts"
import { Spelling } from "./Spelling.ts"
import type { TokenTrie } from "./TokenTrie.ts"

/** A grammar for one vocabulary. Its replies share what was found out about it, up to about 12 MB. */
export class BoundGrammar {
  readonly machine: Machine
  readonly trie: TokenTrie
  readonly spelling: Spelling
  readonly masks: Masks
  readonly forced: Forced

  /** `tokenize` gives forced text the tokens that the same text has in a prompt; without it the longest tokens are used. */
  constructor(grammar: CompiledGrammar, trie: TokenTrie, tokenize?: Tokenize) {
    this.machine = new Machine(grammar)
    this.trie = trie
    this.spelling = new Spelling(this.machine, trie)
    this.masks = new Masks(this.machine, trie, this.spelling)
    this.forced = new Forced(this.machine, trie, tokenize)
  }

  /** The constraint of a new reply. Fails with `exceeded` when it has done more work than `most`, see `Machine.work`. */
  reply(most = Number.POSITIVE_INFINITY, exceeded = () => new Error("too much work")): Constraint {
    return new ReplyConstraint(this, most, exceeded)
  }
}

/** Sets the logits of all tokens that are not in the set to -Infinity. */
const applyMask = (tokens: Uint32Array, logits: Float32Array): void => {
  let from = 0
  /** Words without any token are cleared together. */
  const clear = (to: number) => {
    if (from < to) logits.fill(Number.NEGATIVE_INFINITY, from * 32, to * 32)
  }
  for (let word = 0; word < tokens.length; word++) {
    const bits = tokens[word]!
    if (bits === 0) continue
    clear(word)
    from = word + 1
    if (bits === 0xffffffff) continue
    for (let bit = 0; bit < 32; bit++)
      if (((bits >>> bit) & 1) === 0) logits[word * 32 + bit] = Number.NEGATIVE_INFINITY
  }
  logits.fill(Number.NEGATIVE_INFINITY, from * 32)
}

class ReplyConstraint implements Constraint {
  readonly #bound: BoundGrammar
  #position: Position
  /** Tokens left at the next token, as far as they are known. */
  #left = Number.POSITIVE_INFINITY
  /** Tokens of a short end from here, if one was needed. */
  #plan: ReadonlyArray<number> | undefined
  #planned = 0
  /** The tokens that may be next, once `#finding` has ended. */
  readonly #tokens: Uint32Array
  #finding: Slices | undefined
  #findingLeft = 0
  #leftWork: number
  readonly #exceeded: () => Error

  constructor(bound: BoundGrammar, most: number, exceeded: () => Error) {
    this.#bound = bound
    this.#leftWork = most
    this.#exceeded = exceeded
    this.#position = bound.machine.start()
    this.#tokens = new Uint32Array(bound.trie.words)
  }

  readonly allows = (token: number, left: number): boolean =>
    this.#counted(() => {
      this.#left = left
      if (this.#bound.trie.isEnd(token)) return this.#position.complete
      const end = this.#after(token)
      if (end === undefined || !Number.isFinite(end.shortest)) return false
      return (
        end.shortest < left ||
        !this.#steers(left) ||
        token === this.#nextPlanned() ||
        this.#bound.spelling.fits(end, left - 1)
      )
    })

  readonly find = (left: number): boolean =>
    this.#counted(() => {
      if (this.#finding === undefined || this.#findingLeft !== left) this.#finding = this.#find(left)
      this.#findingLeft = left
      return this.#finding.next().done === true
    })

  readonly mask = (logits: Float32Array, left: number): void => {
    while (!this.find(left));
    applyMask(this.#tokens, logits)
  }

  readonly accept = (token: number): void =>
    this.#counted(() => {
      this.#left--
      this.#finding = undefined
      if (this.#bound.trie.isEnd(token)) return
      const end = this.#after(token)
      if (end === undefined) throw new Error(`the token ${token} may not follow in the reply's grammar`)
      if (token === this.#nextPlanned()) this.#planned++
      else this.#plan = undefined
      this.#position = this.#bound.machine.renewed(end)
    })

  readonly forced = (left = this.#left): ReadonlyArray<number> =>
    this.#counted(() => {
      const tokens = this.#bound.forced.tokens(this.#position)
      if (tokens.length === 0 || left === Number.POSITIVE_INFINITY) return tokens
      if (!this.#steers(left)) return tokens.slice(0, Math.max(left, 0))
      let end = this.#position
      for (const token of tokens) end = this.#along(end, token)!
      return this.#bound.spelling.fits(end, left - tokens.length) ? tokens : []
    })

  /** Takes the work off what is left. */
  #counted<A>(use: () => A): A {
    const { machine } = this.#bound
    const before = machine.work
    const value = use()
    this.#leftWork -= machine.work - before
    if (this.#leftWork < 0) throw this.#exceeded()
    return value
  }

  readonly finished = (): boolean => this.#position.complete && this.#position.choices === 0

  readonly complete = (): boolean => this.#position.complete

  /** True if the shortest end fits into `left` tokens. If it never did, the reply is not steered. */
  #steers(left: number): boolean {
    if (this.#position.shortest <= left) return true
    if (this.#plan !== undefined && this.#plan.length - this.#planned <= left) return true
    this.#plan = this.#bound.spelling.shortest(this.#position, left)
    this.#planned = 0
    return this.#plan !== undefined
  }

  /** Makes the set of the tokens that may be next. */
  *#find(left: number): Slices {
    this.#left = left
    const { masks, spelling, trie } = this.#bound
    const position = this.#position
    const steers = this.#steers(left)
    const tokens = this.#tokens.fill(0)
    yield* masks.collect(position, steers ? left : Number.POSITIVE_INFINITY, tokens)
    const addAll = (from: Uint32Array) => {
      for (let at = 0; at < tokens.length; at++) tokens[at] = tokens[at]! | from[at]!
    }
    if (position.free && (!steers || spelling.fits(position, left - 1))) addAll(trie.silent)
    if (position.complete) addAll(trie.ends)
    const planned = steers ? this.#nextPlanned() : -1
    if (planned >= 0) tokens[planned >> 5] = tokens[planned >> 5]! | (1 << (planned & 31))
  }

  /** The next token of the planned end; -1 if none is planned. */
  #nextPlanned(): number {
    return this.#plan?.[this.#planned] ?? -1
  }

  /** The position after the token; undefined if it may not follow. */
  #after(token: number): Position | undefined {
    return this.#along(this.#position, token)
  }

  #along(from: Position, token: number): Position | undefined {
    const { machine, trie } = this.#bound
    const bytes = trie.bytesOf(token)
    if (bytes.length === 0) return from.free && token < trie.size ? from : undefined
    let at: Position | undefined = from
    for (let index = 0; index < bytes.length && at !== undefined; index++)
      at = machine.read(at, bytes[index]!)
    return at
  }
}
