import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { accepts } from "../../../schema/automata/Automata.ts"
import { PatternProblem, searchAutomaton } from "../../../schema/automata/Pattern.ts"

const patterns = [
  "",
  "^$",
  "a|b",
  "^(?:a|bc)*$",
  "[^a-c]{2,3}$",
  "^\\d+(?:\\.\\d{1,2})?$",
  "\\bab\\b",
  "\\Ba",
  "^\\w+@\\w+\\.com$",
  "(a+)+$",
  "^.{2}$",
  "^\\p{Lu}\\P{Lu}*$",
  "\\s\\S",
  "^(a|$)|b^",
  "[\\u{1F600}-\\u{1F64F}]$",
  "x*?y{0}z+?",
  "(?<name>a)b",
  "^(?!a)",
  "^(?!.*aa)(?=.*b|.*1)[ab1]+$",
  "^(?=.{2,4}$)(?!\\.)[a-c.]*",
  "^a\\b$|\\b$^",
  "(?:^|,)a(?=$)".replace("(?=$)", "$"),
]

const text = fc.oneof(
  fc.string({
    unit: fc.constantFrom("a", "b", "c", "1", ".", " ", "😀", "Ä", "x", "z", ",", "@", "\n"),
    maxLength: 8,
  }),
  fc.string({ unit: "binary", maxLength: 6 }).filter((value) => value.isWellFormed()),
)

describe("searchAutomaton", () => {
  for (const pattern of patterns) {
    it(`agrees with the regular expression ${pattern}`, () => {
      const automaton = searchAutomaton(pattern)
      const expected = new RegExp(pattern, "u")
      fc.assert(fc.property(text, (value) => accepts(automaton, value) === expected.test(value)))
      fc.assert(
        fc.property(text, text, (a, b) => accepts(automaton, `${a}ab${b}`) === expected.test(`${a}ab${b}`)),
      )
    })
  }

  const refused: ReadonlyArray<readonly [string, RegExp]> = [
    ["a(?=a)b", /lookaround/],
    ["^(?=a)b|c", /lookaround/],
    [`^${"(?=a)".repeat(5)}`, /lookaround/],
    [`${"^(?=".repeat(5)}a${")".repeat(5)}`, /lookaround/],
    ["(?<!a)b", /lookaround/],
    ["(a)\\1", /backreferences/],
    ["(", /not a regular expression/],
    ["\\_", /not a regular expression/],
    ["((a{1,100}){1,100}){1,100}", /more than \d+ states/],
    ["a.{2000}b", /more than \d+ states/],
    ["\\p{L}{1,500}\\b\\p{N}", /more than \d+ states/],
    ["^\\d{5000}$", /more than \d+ states/],
    ["a".repeat(4_001), /more than 4000 characters/],
  ]
  for (const [pattern, reason] of refused) {
    it(`refuses ${pattern.slice(0, 40)}`, () => {
      expect(() => searchAutomaton(pattern)).toThrow(PatternProblem)
      expect(() => searchAutomaton(pattern)).toThrow(reason)
    })
  }
})
