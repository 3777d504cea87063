// The matcher against a reference recogniser, on random grammars.
import { expect, it } from "@effect/vitest"
import { compile } from "#engines/grammar/compile/Compile.ts"
import type { Expression } from "#engines/grammar/Expression.ts"
import { Matcher } from "#engines/grammar/test/Matcher.ts"
import { matcherProperties } from "./MatcherProperties.ts"

matcherProperties(150)

const text = (of: string): Expression => ({ kind: "text", text: of })
const rule = (name: string): Expression => ({ kind: "rule", name })
const sequence = (...of: ReadonlyArray<Expression>): Expression => ({ kind: "sequence", of })
const choice = (...of: ReadonlyArray<Expression>): Expression => ({ kind: "choice", of })
const repeat = (of: Expression, least: number, most?: number): Expression => ({
  kind: "repeat",
  of,
  least,
  most,
})

const compiled = (root: Expression, rules: Readonly<Record<string, Expression>> = {}) =>
  compile({ stages: [], rules: { root, rules: new Map(Object.entries(rules)) } })

const matcher = (root: Expression, rules: Readonly<Record<string, Expression>> = {}): Matcher => {
  const made = compiled(root, rules)
  if ("problem" in made) throw new Error(made.problem)
  return new Matcher(made.grammar)
}

const utf8 = new TextEncoder()

it("reports rules that begin with themselves and grammars without a finite text", () => {
  expect(compiled(rule("a"), { a: choice(sequence(rule("a"), text("x")), text("y")) })).toMatchObject({
    problem: 'the rule "a" begins with itself',
  })
  // Through a rule that may be empty.
  expect(
    compiled(sequence(rule("a"), text("!")), {
      a: sequence(rule("empty"), rule("b"), text("x")),
      b: choice(sequence(rule("a"), text("z")), text("y")),
      empty: repeat(text("e"), 0),
    }),
  ).toMatchObject({ problem: expect.stringMatching(/^the rule "[ab]" begins with itself$/) })
  expect(compiled(rule("a"), { a: sequence(text("x"), rule("a")) })).toMatchObject({
    problem: "matches no finite text",
  })
  expect(compiled(choice())).toMatchObject({ problem: "matches no finite text" })
  expect(compiled(rule("a"))).toMatchObject({ problem: 'refers to the rule "a", which does not exist' })
})

it("compiles a large automaton once, wherever it stands", () => {
  const letters = Array.from({ length: 200 }, (_, at) => ({
    accepts: at === 199,
    edges: [[0x61, 0x7a, at + 1]] as const,
  }))
  const automaton: Expression = {
    kind: "automaton",
    automaton: { states: [...letters.slice(0, 199), { accepts: true, edges: [] }] },
  }
  for (const root of [
    automaton,
    rule("it"),
    sequence(automaton, text("!"), automaton),
    repeat(automaton, 2, 9),
  ]) {
    const made = compiled(root, { it: automaton })
    if ("problem" in made) throw new Error(made.problem)
    expect(made.grammar.flags.length).toBeLessThan(220)
    expect(new Matcher(made.grammar).accept(utf8.encode("q".repeat(199)))).toBe(true)
  }
})

it("leaves out alternatives that never end", () => {
  const of = matcher(choice(sequence(text("x"), rule("a")), text("y")), { a: sequence(text("x"), rule("a")) })
  expect(of.accepts(utf8.encode("x"))).toBe(false)
  expect(of.accept(utf8.encode("y"))).toBe(true)
  expect(of.finished).toBe(true)
})

it("reads 10,000 nested lists with two ways at each byte", () => {
  const of = matcher(rule("list"), {
    list: sequence(
      text("["),
      choice(sequence(rule("list"), repeat(sequence(text(","), rule("list")), 0)), text("")),
      text("]"),
    ),
  })
  let ways = 0
  for (let depth = 1; depth <= 10_000 && of.accept(utf8.encode("[")); depth++) ways = Math.max(ways, of.ways)
  expect(ways).toBe(2)
  expect(of.shortestLength).toBe(10_000)
  expect(of.accept(of.shortest())).toBe(true)
  expect(of.finished).toBe(true)
})

it("counts without writing the repeats out", () => {
  const made = compiled(repeat({ kind: "characters", ranges: [[0x20, 0x10ffff]] }, 1_000, 1_000_000))
  if ("problem" in made) throw new Error(made.problem)
  expect(made.grammar.flags.length).toBeLessThan(100)
  const of = new Matcher(made.grammar)
  expect(of.shortestLength).toBe(1_000)
  expect(of.accept(utf8.encode("ä".repeat(999)))).toBe(true)
  expect(of.complete).toBe(false)
  expect(of.accept(utf8.encode("ä".repeat(5_000)))).toBe(true)
  expect(of.complete).toBe(true)
})

it("bounds the ways of reading a text with ambiguous counts, and still ends right", () => {
  const of = matcher(repeat(repeat(repeat(text("a"), 1, 3), 1, 90), 40, 90))
  for (let bytes = 0; bytes < 300; bytes++) {
    expect(of.accept(utf8.encode("a"))).toBe(true)
    expect(of.ways).toBeLessThanOrEqual(1_000)
  }
  expect(of.accept(of.shortest())).toBe(true)
  expect(of.complete).toBe(true)
})

it("finds a marker that overlaps its own beginning", () => {
  const made = compile({
    stages: [
      { until: ["</t>"], mayEnd: false },
      { until: ["aab", "<x>"], mayEnd: true },
    ],
    rules: { root: text("{}"), rules: new Map() },
  })
  if ("problem" in made) throw new Error(made.problem)
  const of = new Matcher(made.grammar)
  expect(of.shortestLength).toBe(4)
  expect(of.accept(utf8.encode("I think aab <</t>"))).toBe(true)
  expect(of.complete).toBe(true)
  expect(of.accept(utf8.encode("hello aaa"))).toBe(true)
  expect(of.complete).toBe(true)
  expect(of.accepts(utf8.encode("b["))).toBe(false)
  expect(of.accept(utf8.encode("b{"))).toBe(true)
  expect(of.complete).toBe(false)
  expect(of.forced()).toEqual(utf8.encode("}"))
})
