// Random grammars, random sentences of them, and a reference recogniser that shares nothing with the matcher.
import fc from "fast-check"
import type { Expression, Rules } from "#engines/grammar/Expression.ts"

/** Few letters make overlaps common; they have 1 to 4 bytes. */
export const letters = ["a", "b", "c", '"', "ä", "ß", "€", "😀"]

const text: fc.Arbitrary<Expression> = fc
  .array(fc.constantFrom(...letters), { minLength: 1, maxLength: 3 })
  .map((of) => ({ kind: "text", text: of.join("") }))

const characters: fc.Arbitrary<Expression> = fc.constantFrom<Expression>(
  { kind: "characters", ranges: [[0x61, 0x62]] },
  {
    kind: "characters",
    ranges: [
      [0x61, 0x61],
      [0xe4, 0x20ac],
    ],
  },
  { kind: "characters", ranges: [[0x20, 0x10ffff]] },
  {
    kind: "characters",
    ranges: [
      [0x1f600, 0x1f64f],
      [0x62, 0x63],
    ],
  },
)

/** (ab)*, a letter of two bytes or more, and an automaton that accepts the empty text. */
const automaton: fc.Arbitrary<Expression> = fc.constantFrom<Expression>(
  {
    kind: "automaton",
    automaton: {
      states: [
        { accepts: true, edges: [[0x61, 0x61, 1]] },
        { accepts: false, edges: [[0x62, 0x62, 0]] },
      ],
    },
  },
  {
    kind: "automaton",
    automaton: {
      states: [
        { accepts: false, edges: [[0x80, 0x10ffff, 1]] },
        { accepts: true, edges: [] },
      ],
    },
  },
)

const names = ["one", "two", "three"]

/** Rules that may come first call only later ones; any rule may come behind a letter. So none begins with itself. */
const expression = (first: ReadonlyArray<string>): fc.Arbitrary<Expression> =>
  fc.letrec<{ of: Expression }>((tie) => {
    const guarded: fc.Arbitrary<Expression> = fc
      .tuple(text, fc.constantFrom(...names), fc.option(text, { nil: undefined }))
      .map(([before, name, after]) => ({
        kind: "sequence",
        of: [before, { kind: "rule", name }, ...(after === undefined ? [] : [after])],
      }))
    const leaves = [text, characters, automaton, guarded]
    return {
      of: fc.oneof(
        { maxDepth: 4, depthSize: "small", withCrossShrink: true },
        fc.oneof(...leaves),
        ...(first.length === 0
          ? []
          : [fc.constantFrom(...first).map((name): Expression => ({ kind: "rule", name }))]),
        fc.array(tie("of"), { maxLength: 3 }).map((of): Expression => ({ kind: "sequence", of })),
        fc.array(tie("of"), { minLength: 1, maxLength: 3 }).map((of): Expression => ({ kind: "choice", of })),
        fc.tuple(tie("of"), fc.nat(3), fc.option(fc.constantFrom(0, 1, 2, 30), { nil: undefined })).map(
          ([of, least, more]): Expression => ({
            kind: "repeat",
            of,
            least: least * (more === 30 ? 8 : 1),
            most: more === undefined ? undefined : least * (more === 30 ? 8 : 1) + more,
          }),
        ),
      ),
    }
  }).of

export const rules: fc.Arbitrary<Rules> = fc
  .tuple(expression(names), expression(names.slice(1)), expression(names.slice(2)), expression([]))
  .map(([root, ...of]) => ({ root, rules: new Map(names.map((name, at) => [name, of[at]!])) }))

/** A random sentence; undefined if none was found in a few hundred steps. `random` gives numbers from 0 up to below 1. */
export const sentence = ({ root, rules }: Rules, random: () => number): string | undefined => {
  let steps = 300
  const pick = <A>(of: ReadonlyArray<A>): A | undefined => of[Math.floor(random() * of.length)]
  const say = (of: Expression): string | undefined => {
    if (steps-- < 0) return undefined
    switch (of.kind) {
      case "text":
        return of.text
      case "characters": {
        const [from, to] = pick(of.ranges)!
        const known = letters.filter(
          (letter) => letter.codePointAt(0)! >= from && letter.codePointAt(0)! <= to,
        )
        const code = from + Math.floor(random() * (to - from + 1))
        if (known.length > 0 && random() < 0.7) return pick(known)
        return code >= 0xd800 && code <= 0xdfff
          ? "x".slice(from > 0x78 ? 1 : 0) || undefined
          : String.fromCodePoint(code)
      }
      case "automaton": {
        let said = ""
        for (let state = of.automaton.states[0]!; ; ) {
          if (state.accepts && (state.edges.length === 0 || random() < 0.4)) return said
          const [from, , next] = pick(state.edges)!
          said += from === 0x80 ? pick(letters.slice(4)) : String.fromCodePoint(from)
          state = of.automaton.states[next]!
        }
      }
      case "sequence":
        return join(of.of)
      case "choice": {
        const one = pick(of.of)
        return one === undefined ? undefined : say(one)
      }
      case "repeat": {
        const most = of.most ?? of.least + 4
        const times = of.least + Math.floor(random() * (most - of.least + 1))
        return join(Array.from({ length: times }, () => of.of))
      }
      case "rule":
        return say(rules.get(of.name)!)
    }
  }
  const join = (parts: ReadonlyArray<Expression>): string | undefined => {
    let said = ""
    for (const part of parts) {
      const next = say(part)
      if (next === undefined) return undefined
      said += next
    }
    return said
  }
  return say(root)
}

/** True if the grammar has this sentence: all ends of each expression from each place, remembered. */
export const recognises = ({ root, rules }: Rules, text: string): boolean => {
  const codes = Array.from(text, (letter) => letter.codePointAt(0)!)
  const known = new Map<Expression, Map<number, ReadonlySet<number>>>()
  const single = (at: number, fits: boolean): ReadonlySet<number> => new Set(fits ? [at] : [])
  const all = (from: Iterable<number>, of: Expression): Set<number> => {
    const ends = new Set<number>()
    for (const at of from) for (const end of endsOf(of, at)) ends.add(end)
    return ends
  }
  const endsOf = (of: Expression, at: number): ReadonlySet<number> => {
    const places = known.get(of) ?? new Map<number, ReadonlySet<number>>()
    known.set(of, places)
    const before = places.get(at)
    if (before !== undefined) return before
    const ends = findEnds(of, at)
    places.set(at, ends)
    return ends
  }
  const findEnds = (of: Expression, at: number): ReadonlySet<number> => {
    switch (of.kind) {
      case "text": {
        const wanted = Array.from(of.text, (letter) => letter.codePointAt(0)!)
        return single(
          at + wanted.length,
          wanted.every((code, index) => codes[at + index] === code),
        )
      }
      case "characters": {
        const code = codes[at]
        return single(
          at + 1,
          code !== undefined && of.ranges.some(([from, to]) => from <= code && code <= to),
        )
      }
      case "automaton": {
        const ends = new Set<number>()
        let state = of.automaton.states[0]
        for (let next = at; state !== undefined; next++) {
          if (state.accepts) ends.add(next)
          const code = codes[next]
          const edge = state.edges.find(([from, to]) => code !== undefined && from <= code && code <= to)
          state = edge === undefined ? undefined : of.automaton.states[edge[2]]
        }
        return ends
      }
      case "sequence":
        return of.of.reduce((ends, part) => all(ends, part), new Set([at]))
      case "choice":
        return new Set(of.of.flatMap((part) => [...endsOf(part, at)]))
      case "repeat": {
        let reached = new Set([at])
        for (let times = 0; times < of.least; times++) reached = all(reached, of.of)
        const ends = new Set(reached)
        for (let times = of.least; times < (of.most ?? Number.POSITIVE_INFINITY); times++) {
          reached = new Set([...all(reached, of.of)].filter((end) => !ends.has(end)))
          if (reached.size === 0) break
          for (const end of reached) ends.add(end)
        }
        return ends
      }
      case "rule":
        return endsOf(rules.get(of.name)!, at)
    }
  }
  return endsOf(root, 0).has(codes.length)
}
