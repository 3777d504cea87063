// Text that has to follow because nothing else is possible, and its tokens.
import type { Position } from "./Frames.ts"
import type { Machine } from "./Machine.ts"
import { spell } from "./Spelling.ts"
import type { TokenTrie } from "./TokenTrie.ts"

/** The tokens of a text, as the model's tokenizer gives them for text within a prompt. */
export type Tokenize = (text: string) => ReadonlyArray<number>

const mostForced = 64
/** Longer runs are forced in several parts. */
const mostBytes = 1_024
/** Ways of reading the run, summed over its bytes: a run with many ways is forced in shorter parts. 5 ms, measured. */
const mostPlaces = 20_000

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The bytes that have to follow, and the position after them. */
export const forcedRun = (
  machine: Machine,
  from: Position,
): { readonly bytes: ReadonlyArray<number>; readonly end: Position } => {
  const bytes: Array<number> = []
  let end = from
  let places = 0
  while (end.only >= 0 && !end.complete && bytes.length < mostBytes && places < mostPlaces) {
    places += end.places.length
    bytes.push(end.only)
    end = machine.read(end, end.only)!
  }
  return { bytes, end }
}

export class Forced {
  readonly #machine: Machine
  readonly #trie: TokenTrie
  readonly #tokenize: Tokenize | undefined

  constructor(machine: Machine, trie: TokenTrie, tokenize: Tokenize | undefined) {
    this.#machine = machine
    this.#trie = trie
    this.#tokenize = tokenize
  }

  /** At most 64 tokens that have to follow, without those at the end that may be the beginning of longer ones. */
  tokens(from: Position): ReadonlyArray<number> {
    from.forced ??= this.#find(from)
    return from.forced
  }

  #find(from: Position): ReadonlyArray<number> {
    if (from.only < 0 || from.complete) return []
    const { bytes, end } = forcedRun(this.#machine, from)
    const tokens = this.#canonical(bytes) ?? spell(this.#trie, (index) => bytes[index] ?? -1, mostBytes) ?? []
    if (end.complete && end.choices === 0) return tokens.slice(0, mostForced)
    let at = 0
    const whole = tokens.findIndex((token) => {
      const begin = at
      at += this.#trie.bytesOf(token).length
      return this.#goesOn(bytes, begin, end)
    })
    return tokens.slice(0, Math.min(whole < 0 ? tokens.length : whole, mostForced))
  }

  /** The tokenizer's tokens, if they spell exactly these bytes. */
  #canonical(bytes: ReadonlyArray<number>): ReadonlyArray<number> | undefined {
    if (this.#tokenize === undefined) return undefined
    let text: string
    try {
      text = strict.decode(Uint8Array.from(bytes))
    } catch {
      return undefined
    }
    const tokens = this.#tokenize(text)
    let at = 0
    for (const token of tokens) {
      const of = this.#trie.bytesOf(token)
      if (of.length === 0 || of.some((byte, index) => byte !== bytes[at + index])) return undefined
      at += of.length
    }
    return at === bytes.length ? tokens : undefined
  }

  /** True if a token that may follow begins at `begin` and is longer than what is left of the run. */
  #goesOn(bytes: ReadonlyArray<number>, begin: number, end: Position): boolean {
    let node = 0
    for (let at = begin; at < bytes.length; at++) {
      node = this.#trie.child(node, bytes[at]!)
      if (node < 0) return false
    }
    const { behind, byte, depth } = this.#trie
    const path = [end]
    const top = depth[node]!
    for (let below = node + 1; below < behind[node]!; ) {
      const level = depth[below]! - top
      const next = this.#machine.read(path[level - 1]!, byte[below]!)
      if (next === undefined) {
        below = behind[below]!
        continue
      }
      if (this.#trie.tokenAt(below) >= 0) return true
      path[level] = next
      below++
    }
    return false
  }
}
