// Expressions to automata over bytes, not yet deterministic. Each rule that is called becomes one automaton. A rule that
// is only the end of another one becomes part of it, so that repetition by recursion at the end needs no stack.
import type { Checkpoint } from "../Checkpoint.ts"
import type { Automaton, CodePoints, Expression, Rules } from "../Expression.ts"
import { Sizes, writtenOut } from "./Sizes.ts"
import { type ByteRange, utf8Ranges } from "./Utf8Ranges.ts"

/** Why a grammar cannot be compiled, as a sentence without its subject's name. */
export class GrammarProblem extends Error {}

export interface Call {
  readonly network: number
  readonly least: number
  readonly most: number
  readonly to: number
}

export interface Edge {
  readonly low: number
  readonly high: number
  readonly to: number
}

interface Network {
  readonly name: string
  readonly start: number
  readonly final: number
}

/** States of all automata together; more take too long. A guess. */
export const mostStates = 400_000
/** Automata with at least this many states are not copied to each of their uses, but called. A guess. */
const largeAutomaton = 32
/** An automaton with more states calls the rules at its end, so that rules with many uses are not copied often. A guess. */
const mostWithTails = 20_000
/** Counts are added in one number with others, see Frames. */
const mostRepeats = 2 ** 24

const utf8 = new TextEncoder()

export class Networks {
  readonly #rules: Rules["rules"]
  readonly #checkpoint: Checkpoint
  readonly networks: Array<Network> = []
  readonly #waiting: Array<{ readonly name: string; readonly of: Expression }> = []
  readonly #numbers = new Map<string | Expression | Automaton, number>()
  readonly #sizes = new Sizes()
  readonly epsilons: Array<Array<number>> = []
  readonly edges: Array<Array<Edge>> = []
  readonly calls: Array<Array<Call>> = []
  /** States in which any token may follow. */
  readonly free = new Set<number>()
  #name = ""
  #final = -1
  #begun = 0
  /** Of the automaton that is built: the rules at its end, and the shared ends of its characters. */
  #tails = new Map<string, number>()
  #characterEnds = new Map<string, number>()

  /**
   * `first` builds the first automaton, in front of the rules' root. `watch` is called with the name of each automaton before it is
   * built.
   */
  constructor(
    rules: Rules,
    first: (networks: Networks, final: number) => number,
    watch: (name: string) => void,
    checkpoint: Checkpoint,
  ) {
    this.#rules = rules.rules
    this.#checkpoint = checkpoint
    this.#waiting.push({ name: "root", of: rules.root })
    for (let n = 0; n < this.#waiting.length; n++) {
      const { name, of } = this.#waiting[n]!
      watch(name)
      this.#name = name
      this.#tails = new Map()
      this.#characterEnds = new Map()
      this.#begun = this.edges.length
      this.#final = this.state()
      const start = n === 0 ? first(this, this.#final) : this.#body(of, this.#final)
      this.networks.push({ name, start, final: this.#final })
    }
  }

  state(): number {
    if (this.edges.length >= mostStates) throw new GrammarProblem(`needs more than ${mostStates} states`)
    this.#checkpoint(1)
    this.epsilons.push([])
    this.calls.push([])
    return this.edges.push([]) - 1
  }

  edge(from: number, low: number, high: number, to: number): void {
    this.edges[from]!.push({ low, high, to })
  }

  /** As `build`, for the body of an automaton of its own: it is never a call of itself. */
  #body(of: Expression, to: number): number {
    return of.kind === "automaton" ? this.#automaton(of.automaton, to) : this.build(of, to)
  }

  /** The state before the expression if `to` is the state after it. */
  build(of: Expression, to: number): number {
    switch (of.kind) {
      case "text":
        return utf8.encode(of.text).reduceRight((next, byte) => {
          const before = this.state()
          this.edge(before, byte, byte, next)
          return before
        }, to)
      case "characters": {
        const before = this.state()
        for (const range of of.ranges) this.#characters(before, range, to)
        return before
      }
      case "automaton":
        return of.automaton.states.length < largeAutomaton
          ? this.#automaton(of.automaton, to)
          : this.#call(
              this.#number(of.automaton, () => ({ name: this.#name, of })),
              1,
              1,
              to,
            )
      case "sequence":
        return of.of.reduceRight((next, part) => this.build(part, next), to)
      case "choice": {
        const before = this.state()
        const texts = of.of.flatMap((part) => (part.kind === "text" ? [part.text] : []))
        if (texts.length > 0) this.epsilons[before]!.push(this.#texts(texts, to))
        for (const part of of.of) if (part.kind !== "text") this.epsilons[before]!.push(this.build(part, to))
        return before
      }
      case "repeat":
        return this.#repeat(of.of, of.least, of.most, to)
      case "rule":
        return this.#rule(of.name, to)
    }
  }

  /** One of some texts: beginnings that are alike share their states, so that long lists stay cheap. */
  #texts(texts: ReadonlyArray<string>, to: number): number {
    const first = this.state()
    const children = new Map<number, Map<number, number>>([[first, new Map()]])
    for (const each of new Set(texts)) {
      let at = first
      for (const byte of utf8.encode(each)) {
        const next = children.get(at)?.get(byte) ?? this.state()
        if (!children.has(next)) {
          children.set(next, new Map())
          children.get(at)?.set(byte, next)
          this.edge(at, byte, byte, next)
        }
        at = next
      }
      this.epsilons[at]!.push(to)
    }
    return first
  }

  #characters(before: number, [from, last]: CodePoints, to: number): void {
    for (const [first, ...rest] of utf8Ranges(from, last))
      if (first !== undefined) this.edge(before, first[0], first[1], this.#end(rest, to))
  }

  #end(ranges: ReadonlyArray<ByteRange>, to: number): number {
    const [first, ...rest] = ranges
    if (first === undefined) return to
    const key = `${to},${ranges.join()}`
    const known = this.#characterEnds.get(key)
    if (known !== undefined) return known
    const before = this.state()
    this.#characterEnds.set(key, before)
    this.edge(before, first[0], first[1], this.#end(rest, to))
    return before
  }

  #automaton({ states }: Automaton, to: number): number {
    const numbers = states.map(() => this.state())
    states.forEach(({ accepts, edges }, at) => {
      const before = numbers[at]!
      if (accepts) this.epsilons[before]!.push(to)
      for (const [from, last, next] of edges) {
        const target = numbers[next]
        if (target === undefined) throw new GrammarProblem("contains an automaton with an edge to no state")
        this.#characters(before, [from, last], target)
      }
    })
    return numbers[0] ?? this.state()
  }

  #repeat(of: Expression, least: number, most: number | undefined, to: number): number {
    if (least > mostRepeats || (most !== undefined && most > mostRepeats))
      throw new GrammarProblem(`counts to more than ${mostRepeats}`)
    if (most === undefined) {
      const loop = this.state()
      this.epsilons[loop]!.push(to, this.build(of, loop))
      return least === 0 ? loop : this.#repeat(of, least, least, loop)
    }
    if (least > most) return this.state()
    if (most > 1 && most * this.#sizes.of(of) > writtenOut) {
      return this.#call(
        this.#number(of, () => ({ name: this.#name, of })),
        least,
        most,
        to,
      )
    }
    let next = to
    for (let times = most; times > 0; times--) {
      const once = this.build(of, next)
      if (times <= least) next = once
      else {
        next = this.state()
        this.epsilons[next]!.push(once, to)
      }
    }
    return next
  }

  #rule(name: string, to: number): number {
    const of = this.#rules.get(name)
    if (of === undefined) throw new GrammarProblem(`refers to the rule "${name}", which does not exist`)
    const isTail = to === this.#final
    const known = isTail ? this.#tails.get(name) : undefined
    if (known !== undefined) return known
    if (!isTail || this.edges.length - this.#begun >= mostWithTails)
      return this.#call(
        this.#number(name, () => ({ name, of })),
        1,
        1,
        to,
      )
    const before = this.state()
    this.#tails.set(name, before)
    this.epsilons[before]!.push(this.build(of, to))
    return before
  }

  #call(network: number, least: number, most: number, to: number): number {
    const before = this.state()
    this.calls[before]!.push({ network, least, most, to })
    return before
  }

  #number(
    key: string | Expression | Automaton,
    make: () => { readonly name: string; readonly of: Expression },
  ): number {
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const number = this.#waiting.push(make()) - 1
    this.#numbers.set(key, number)
    return number
  }
}
