// The shortest way from each state to the end of its automaton, in bytes. Knuth's generalisation of Dijkstra's algorithm
// to grammars: the nearest state is final first, and a call is known once both the called automaton and what follows are.
import type { Checkpoint } from "../Checkpoint.ts"
import { firstCall } from "../CompiledGrammar.ts"
import type { Deterministic } from "./Determinize.ts"

export interface Shortest {
  readonly bytes: Float64Array
  /** As `shortestStep` of the compiled grammar, with calls counted within their state. */
  readonly step: Int32Array
}

/** A binary heap of states, the nearest first. */
class Nearest {
  readonly #keys: Array<number> = []
  readonly #states: Array<number> = []

  get size(): number {
    return this.#keys.length
  }

  push(key: number, state: number): void {
    let at = this.#keys.push(key) - 1
    this.#states.push(state)
    while (at > 0) {
      const above = (at - 1) >> 1
      if (this.#keys[above]! <= key) break
      this.#swap(at, above)
      at = above
    }
  }

  pop(): number {
    const state = this.#states[0]!
    this.#swap(0, this.#keys.length - 1)
    this.#keys.pop()
    this.#states.pop()
    for (let at = 0; ; ) {
      let least = 2 * at + 1
      if (least + 1 < this.#keys.length && this.#keys[least + 1]! < this.#keys[least]!) least++
      if (least >= this.#keys.length || this.#keys[at]! <= this.#keys[least]!) return state
      this.#swap(at, least)
      at = least
    }
  }

  #swap(a: number, b: number): void {
    const key = this.#keys[a]!
    this.#keys[a] = this.#keys[b]!
    this.#keys[b] = key
    const state = this.#states[a]!
    this.#states[a] = this.#states[b]!
    this.#states[b] = state
  }
}

/** Pairs of numbers, each for a state. Lists of their own would be as many objects as there are states. */
class Links {
  readonly #states: Array<number> = []
  readonly #pairs: Array<number> = []
  #from = new Int32Array(0)
  #order = new Int32Array(0)

  add(state: number, first: number, second: number): void {
    this.#states.push(state)
    this.#pairs.push(first, second)
  }

  /** After the last `add`. */
  sort(states: number): void {
    this.#from = new Int32Array(states + 1)
    for (const state of this.#states) this.#from[state + 1] = (this.#from[state + 1] ?? 0) + 1
    for (let state = 0; state < states; state++)
      this.#from[state + 1] = this.#from[state + 1]! + this.#from[state]!
    const next = this.#from.slice()
    this.#order = new Int32Array(this.#states.length)
    this.#states.forEach((state, link) => {
      this.#order[next[state] ?? 0] = link
      next[state] = (next[state] ?? 0) + 1
    })
  }

  of(state: number, use: (first: number, second: number) => void): void {
    for (let at = this.#from[state]!; at < this.#from[state + 1]!; at++) {
      const link = this.#order[at]!
      use(this.#pairs[2 * link]!, this.#pairs[2 * link + 1]!)
    }
  }
}

/** `usable(byte)` is false for bytes that the way must not use. */
export const shortestEnds = (
  { starts, states }: Deterministic,
  usable: (byte: number) => boolean,
  checkpoint: Checkpoint,
): Shortest => {
  const bytes = new Float64Array(states.length).fill(Number.POSITIVE_INFINITY)
  const step = new Int32Array(states.length).fill(-1)
  const final = new Uint8Array(states.length)
  /** The edges that lead to each state, and the calls that wait for it. */
  const into = new Links()
  const waiting = new Links()
  const nearest = new Nearest()

  states.forEach(({ accepts, calls, edges }, state) => {
    checkpoint(1 + edges.length + calls.length)
    if (accepts) {
      bytes[state] = 0
      nearest.push(0, state)
    }
    for (const { high, low, to } of edges) {
      let byte = low
      while (byte <= high && !usable(byte)) byte++
      if (byte <= high) into.add(to, state, byte)
    }
    calls.forEach(({ network, to }, call) => {
      waiting.add(to, state, call)
      waiting.add(starts[network]!, state, call)
    })
  })
  into.sort(states.length)
  waiting.sort(states.length)

  const offer = (state: number, length: number, by: number) => {
    if (length >= bytes[state]!) return
    bytes[state] = length
    step[state] = by
    nearest.push(length, state)
  }

  while (nearest.size > 0) {
    const state = nearest.pop()
    if (final[state] === 1) continue
    final[state] = 1
    checkpoint(1)
    const length = bytes[state]! + 1
    into.of(state, (before, byte) => offer(before, length, byte))
    waiting.of(state, (before, number) => {
      const { least, network, to } = states[before]!.calls[number]!
      const called = starts[network]!
      if (final[to] !== 1 || (least > 0 && final[called] !== 1)) return
      offer(before, (least === 0 ? 0 : least * bytes[called]!) + bytes[to]!, firstCall + number)
    })
  }
  return { bytes, step }
}
