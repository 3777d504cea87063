// About how many states an expression needs, if its repeats are written out.
import type { Expression } from "../Expression.ts"

/** Repeats are written out up to this many states, because that is faster than counting. A guess. */
export const writtenOut = 64

export class Sizes {
  readonly #known = new Map<Expression, number>()

  of(of: Expression): number {
    const known = this.#known.get(of)
    if (known !== undefined) return known
    const size = this.#measure(of)
    this.#known.set(of, size)
    return size
  }

  #measure(of: Expression): number {
    switch (of.kind) {
      case "text":
        return of.text.length
      case "characters":
        return of.ranges.every(([, to]) => to < 0x80) ? 1 : 8
      case "automaton":
        return of.automaton.states.reduce((sum, { edges }) => sum + 1 + edges.length, 0)
      case "sequence":
      case "choice":
        return of.of.reduce((sum, part) => sum + this.of(part), 1)
      case "repeat":
        return this.of(of.of) * Math.min(of.most ?? of.least + 1, writtenOut)
      case "rule":
        return 1
    }
  }
}
